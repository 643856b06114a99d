"""The pages of a console: each asks the domain one question and shows its answer; none decides anything.

Whoever is not logged in is sent to the login, whatever the page; what cannot be answered is said on the page itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from maia.domain import Domain, check_home_audit
from maia.errors import MaiaError, UsageError
from maia.log import AUDIT_KINDS
from maia.services.console.desk import Desk, Overseer, read_form, read_instant
from maia.services.console.evidence_view import AuditSearch, search_audit
from maia.services.console.graph_view import MOST_NODES, draw
from maia.services.console.live_view import LiveView
from maia.services.console.rights_view import ACTIONS, find_matrix, find_proof, safe_proof, type_names

_MAX_TEXT = 4096
Asked = Mapping[str, str]
Values = dict[str, Any]


class _Pages:
    """What the pages share: who asks, what was asked, and how a refusal is shown."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.live = LiveView(desk.domain)

    async def show(
        self, request: Request, template: str, find: Callable[[Domain, Asked, datetime], Values], **empty: object
    ) -> Response:
        """Show a page about what the domain answers; a refusal stands on the page, and the question stays in its form.

        Args:
            request: Who asks, and what.
            template: The page.
            find: Asks the domain, in its thread.
            empty: What the page shows without an answer.
        """
        who = await self.desk.overseer(request)
        if who is None:
            return RedirectResponse("/login", 303)
        asked, now = _asked(request), self.desk.clock()

        def look() -> tuple[Values, int]:
            domain = self.desk.domain
            values: Values = {"types": type_names(domain), "names": sorted(domain.home.folder.keys), "problem": None}
            values |= {"live": self.live.now(at=now), "actions": ACTIONS, "asked": asked, **empty}
            try:
                return values | find(domain, asked, read_instant(asked.get("at", "")) or now), 200
            except MaiaError as error:
                return values | {"problem": error}, 503 if error.code.endswith("UNAVAILABLE") else 400

        values, status = await self.desk.ask(look)
        return self.desk.page(template, who, status=status, **values)


def console_routes(desk: Desk) -> APIRouter:
    """Make the routes of the pages."""
    router, pages = APIRouter(), _Pages(desk)

    @router.get("/rights")
    async def show_rights(request: Request) -> Response:
        """Show who sees what, and the proof of the cell that was asked about."""
        return await pages.show(request, "rights.html", _rights, type="", action="subscribe", matrix=None, proof=None)

    @router.get("/why")
    async def show_why(request: Request) -> Response:
        """Show why somebody has a cell, or what is missing."""
        return await pages.show(request, "why.html", _why, proof=None, action="subscribe", attributes=())

    @router.get("/graph")
    async def show_graph(request: Request) -> Response:
        """Show who gave what to whom."""
        return await pages.show(request, "graph.html", _graph, drawing=None, delegations=(), most=MOST_NODES)

    @router.get("/evidence")
    async def show_evidence(request: Request) -> Response:
        """Show what the audit tells, and whether it is whole."""
        return await pages.show(
            request, "evidence.html", _evidence, rows=(), more=False, checked=None, kinds=AUDIT_KINDS
        )  # fmt: skip

    @router.get("/changes")
    async def show_changes(request: Request) -> Response:
        """Show who gains and loses what between two moments."""
        return await pages.show(request, "changes.html", _changes, found=None, compared=None, first=None, then=None)

    @router.get("/live")
    async def show_live(request: Request) -> Response:
        """Show how the domain stands now."""
        return await pages.show(request, "live.html", lambda _domain, _asked, _at: {})

    @router.get("/live/strip")
    async def give_strip(request: Request) -> Response:
        """Give the numbers of the strip, for a page that is open."""
        if await desk.overseer(request) is None:
            return JSONResponse({"code": "NO_SESSION"}, 401)
        return JSONResponse(await desk.ask(lambda: pages.live.now(at=desk.clock()).to_json()))

    @router.get("/revoke")
    async def preview_revocation(request: Request) -> Response:
        """Show what a revocation would end."""
        return await pages.show(request, "revoke.html", _preview, preview=None, done=None, identity="")

    @router.post("/revoke")
    async def revoke(request: Request) -> Response:
        """Revoke a certificate whose preview was shown and confirmed."""
        form = await read_form(request)
        who = await desk.changer(request, form)
        return await _revoke(desk, pages, who, form)

    return router


def _rights(domain: Domain, asked: Asked, at: datetime) -> Values:
    names = type_names(domain)
    type_, action = asked.get("type") or (names[0] if names else ""), _action(asked)
    if not type_:
        return {"action": action}
    matrix = find_matrix(domain, type_, action=action, at=at)
    who, attribute = asked.get("who", ""), asked.get("attribute", "")
    proof = safe_proof(domain, type_, attribute, who, action=action, at=at) if who and attribute else None
    return {"type": type_, "action": action, "matrix": matrix, "proof": proof}


def _why(domain: Domain, asked: Asked, at: datetime) -> Values:
    action, type_ = _action(asked), asked.get("type", "")
    if not (type_ and asked.get("attribute") and asked.get("who")):
        return {"action": action}
    proof = find_proof(
        domain, type_, asked["attribute"], asked["who"], action=action, at=at, row=_row(asked.get("row", "")),
        where=asked.get("where", ""),
    )  # fmt: skip
    return {"action": action, "proof": proof}


def _graph(domain: Domain, asked: Asked, at: datetime) -> Values:
    found = domain.delegations(asked.get("type") or None, at=at)
    shown = found if asked.get("all") else tuple(one for one in found if one.code == "OK")
    return {"delegations": shown, "drawing": draw(shown)}


def _evidence(domain: Domain, asked: Asked, at: datetime) -> Values:
    search = AuditSearch(
        kind=asked.get("kind", ""), who=asked.get("who", ""), code=asked.get("code", ""),
        since=read_instant(asked.get("since", "")),
    )  # fmt: skip
    rows, more = search_audit(domain, search, at=at)
    checked = check_home_audit(domain.home, at=at) if asked.get("verify") else None
    return {"rows": rows, "more": more, "checked": checked}


def _changes(domain: Domain, asked: Asked, at: datetime) -> Values:
    then = read_instant(asked.get("then", ""))
    if then is None:
        return {}
    found = domain.what_if(at=at, then=then)
    left, type_ = asked.get("left", ""), asked.get("type", "")
    compared = None
    if left and type_:
        compared = domain.compare(type_, left, asked.get("right") or left, at=at, then=then)
    return {"found": found, "compared": compared, "first": at, "then": then}


def _preview(domain: Domain, asked: Asked, at: datetime) -> Values:
    text = asked.get("certificate", "")
    if not text:
        return {}
    preview = domain.preview_revocation(_identity(text), at=at)
    return {"preview": preview, "identity": preview.draft.certificate.certificate_id.hex()}


async def _revoke(desk: Desk, pages: _Pages, who: Overseer, form: Asked) -> Response:
    """Revoke, and show what was done in the place of the preview."""
    if form.get("confirm") != "yes":
        raise UsageError("confirm that all of this shall end", code="NOT_CONFIRMED")

    def do() -> Values:
        domain = desk.domain
        named = domain.home.folder.certificate(_identity(form.get("certificate", "")))
        identity, key = named.certificate_id.hex(), who.session.key
        desk.tell("revoke", key, who.oversight, source=identity, code="REVOKE")
        try:
            done = domain.revoke(identity, passphrase=desk.passphrase)
        except MaiaError as error:
            desk.tell("revoke", key, who.oversight, source=identity, code=error.code)
            raise
        desk.tell("revoke", key, who.oversight, source=identity)
        names = {"types": type_names(domain), "names": sorted(domain.home.folder.keys), "problem": None}
        at = desk.clock()
        return names | {"done": done, "preview": None, "identity": "", "live": pages.live.now(at=at), "asked": {}}

    return desk.page("revoke.html", who, actions=ACTIONS, **await desk.ask(do))


def _identity(text: str) -> str:
    """Let a certificate be named by its id, or the beginning of it.

    Raises:
        UsageError: It is none: ``NOTHING_NAMED``.
    """
    # SECURITY: never a file, by which a page would read whatever the console's process may.
    if not re.fullmatch(r"[0-9a-f]{4,64}", text) or Path(text).exists():
        raise UsageError("name a certificate by its id, or the beginning of it", code="NOTHING_NAMED")
    return text


def _asked(request: Request) -> dict[str, str]:
    """Read what a question says, each word once.

    Raises:
        UsageError: A word is too long.
    """
    asked = dict(request.query_params)
    if any(len(value) > _MAX_TEXT for value in asked.values()):
        raise UsageError(f"a field has at most {_MAX_TEXT} letters", code="FIELDS")
    return asked


def _action(asked: Asked) -> str:
    action = asked.get("action") or "subscribe"
    if action not in ACTIONS:
        raise UsageError(f"`{action}` is about no cell; ask for subscribe or publish", code="UNKNOWN_ACTION")
    return action


def _row(text: str) -> dict[str, object] | None:
    if not text.strip():
        return None
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError("a row is a JSON object: attributes by name", code="ROW_TEXT") from error
    if not isinstance(row, dict):
        raise UsageError("a row is a JSON object: attributes by name", code="ROW_TEXT")
    return row
