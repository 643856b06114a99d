"""What every page of a console stands on: the domain, who asks, and the templates.

Rules kept here:

- the domain is worked with in one thread, one question after the other;
- every request asks the domain anew whether this key oversees it: a name that is revoked ends its sessions;
- a change needs a session that asked for changes, a key that may change now, the session's own token, and a request
  that no other site sent;
- the audit has who logs in and who revokes, by the key that was proven, before it counts;
- templates escape whatever they show, and refuse to show what is not there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from maia.domain import Domain, Oversight, audit_of
from maia.errors import DeniedError, MaiaError, MalformedError, UsageError, VerificationError
from maia.home import Home
from maia.log import OK, AuditRow
from maia.principals import PublicKey
from maia.services.console.login import Login, LoginDesk
from maia.services.console.sessions import ConsoleSession, ConsoleSessions
from maia.services.http import UnprovenKeys
from maia.wire import problem_of

_FOLDER = Path(__file__).parent
_MAX_FIELDS, _MAX_FIELD = 32, 16_384
_OWN_SITES = (None, "same-origin", "none")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overseer:
    """Who asks, in this request: a session, and what its key may do now."""

    session: ConsoleSession
    oversight: Oversight

    @property
    def changes(self) -> bool:
        """Whether it asked to change things, and may."""
        return self.session.changes and self.oversight.changes


class Desk:
    """A console at work."""

    def __init__(
        self,
        home: Home,
        *,
        hosts: frozenset[str],
        secure: bool,
        clock: Callable[[], datetime],
        passphrase: Callable[[], str] | None,
    ) -> None:
        """Open a home; nothing is read yet.

        Args:
            home: Whose rights are shown.
            hosts: The hosts that the console is.
            secure: Whether browsers reach it over TLS.
            clock: Gives the time.
            passphrase: Asks for the passphrase of a sealed key that signs a list; nobody is asked without it.
        """
        self.domain = Domain(home, clock=clock)
        self.clock = clock
        self.console = home.key(home.config.broker)
        self.login = LoginDesk(self.console.key_id, hosts)
        self.sessions = ConsoleSessions()
        self.unproven = UnprovenKeys(home)
        self.passphrase = passphrase or _nobody
        # A name with the prefix is refused by browsers unless it came over TLS from this very host.
        self._cookie, self._secure = ("__Host-maia" if secure else "maia-console"), secure
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="console")
        self._templates = Environment(
            loader=FileSystemLoader(_FOLDER / "templates"), autoescape=True, undefined=StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._templates.filters |= {"instant": show_instant, "coded": _coded}

    async def ask(self, question: Callable[[], T]) -> T:
        """Ask the domain something, after those who asked before."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, question)

    def close(self) -> None:
        """Let go of what was opened."""
        self._worker.shutdown()
        self.domain.close()

    # -- who asks

    async def overseer(self, request: Request) -> Overseer | None:
        """Find out who asks; nobody without a session, or when its key oversees the domain no longer."""
        cookie = request.cookies.get(self._cookie, "")
        session = self.sessions.find(cookie, at=self.clock())
        if session is None:
            return None
        try:
            oversight = await self.ask(lambda: self.domain.oversight(session.key))
        except DeniedError:
            self.sessions.close(cookie)
            return None
        return Overseer(session=session, oversight=oversight)

    async def changer(self, request: Request, form: Mapping[str, str]) -> Overseer:
        """Find out who asks for a change.

        Raises:
            VerificationError: Nobody is logged in (``NO_SESSION``), or the form is another session's (``WRONG_FORM``).
            DeniedError: The session is for looking only: ``READ_ONLY``.
        """
        found = await self.own_form(request, form)
        if not found.changes:
            raise DeniedError("this session is for looking only; log in for changes", code="READ_ONLY")
        return found

    async def own_form(self, request: Request, form: Mapping[str, str]) -> Overseer:
        """Find out who sends a form of its own session."""
        found = await self.overseer(request)
        if found is None:
            raise VerificationError("nobody is logged in here", code="NO_SESSION")
        if not found.session.is_form(form.get("csrf", "")):
            raise VerificationError("the form is not of this session; load the page again", code="WRONG_FORM")
        return found

    async def begin(self, request: Request, login: Login) -> Response:
        """Begin a session for whoever oversees the domain, in place of the one before.

        Raises:
            DeniedError: The key does not: ``NO_OVERSIGHT``.
        """
        key, path = login.proof.key, request.scope["route"].path
        await self.ask(lambda: self.tell("login", key, self.domain.oversight(key), source=path))
        cookie = self.sessions.open(login, before=request.cookies.get(self._cookie, ""), at=self.clock())
        answer = RedirectResponse("/rights", 303)
        answer.set_cookie(self._cookie, cookie, path="/", secure=self._secure, httponly=True, samesite="strict")
        return answer

    def tell(self, kind: str, key: PublicKey, oversight: Oversight, *, source: str, code: str = OK) -> None:
        """Put into the audit what a key that was proven does here.

        Raises:
            MaiaError: It cannot be told, so it is not done.
        """
        row = AuditRow(
            at=self.clock(), kind=kind, principal=key.fingerprint, type_id="", source=source, subject=oversight.name,
            code=code, events=0,
        )  # fmt: skip
        audit_of(self.domain.home).note([row])

    def end(self, request: Request) -> Response:
        """End the session of a browser."""
        self.sessions.close(request.cookies.get(self._cookie, ""))
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(self._cookie, path="/", secure=self._secure, httponly=True, samesite="strict")
        return answer

    # -- pages

    def page(self, template: str, who: Overseer | None = None, *, status: int = 200, **values: object) -> Response:
        """Show a page."""
        shown = self._templates.get_template(template).render(
            domain=self.domain.name, who=who, now=self.clock(), page=template.partition(".")[0], **values
        )
        return HTMLResponse(shown, status)

    def problem(self, error: MaiaError, who: Overseer | None = None) -> Response:
        """Show a refusal; whoever oversees the domain may know why, and others only what they did."""
        problem = problem_of(error)
        known = who is not None or isinstance(error, MalformedError | VerificationError | UsageError)
        code, message = (error.code, error.message) if known else (problem.code, problem.detail)
        status = 401 if error.code == "NO_SESSION" else 403 if isinstance(error, VerificationError) else problem.status
        return self.page("problem.html", who, status=status, code=code, message=message)


async def read_form(request: Request) -> dict[str, str]:
    """Read what a form of this very site sent.

    Raises:
        VerificationError: Another site sent it: ``OTHER_SITE``.
        MalformedError: It is no form, or has too much in it.
    """
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    own = {None, f"{request.url.scheme}://{request.url.netloc}"}
    if site == "same-origin":
        own.add("null")  # what a browser says of a page that sends no referrer
    if site not in _OWN_SITES or origin not in own:
        raise VerificationError("the form was sent from another site", code="OTHER_SITE")
    try:
        fields = parse_qsl(
            (await request.body()).decode("ascii"), keep_blank_values=True, strict_parsing=True, errors="strict",
            max_num_fields=_MAX_FIELDS,
        )  # fmt: skip
    except (ValueError, UnicodeDecodeError) as error:
        raise MalformedError("this is no form", code="FIELDS") from error
    if len({name for name, _ in fields}) != len(fields) or any(len(value) > _MAX_FIELD for _, value in fields):
        raise MalformedError("a form has each field once, and none too long", code="FIELDS")
    return dict(fields)


def read_instant(text: str) -> datetime | None:
    """Read an instant that a page sends; nothing when there is none. Without a zone it is in UTC.

    Raises:
        UsageError: It is none.
    """
    if not text.strip():
        return None
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as error:
        message = f"`{text[:64]}` is no instant; write `2026-12-31T00:00` or `2026-12-31`, in UTC"
        raise UsageError(message, code="INSTANT_TEXT") from error
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def show_instant(instant: datetime | None) -> str:
    """Write an instant for people."""
    return "" if instant is None else f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _coded(text: str) -> Markup:
    """Write a message for a page: what stands in backticks as code, and everything escaped."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part) for number, part in enumerate(parts)
    )


def _nobody() -> str:
    raise UsageError(
        "the key that signs the list is sealed, and nobody can be asked for its passphrase here; "
        "start the console with --passphrase-file, or use `maia revoke`",
        code="PASSPHRASE_MISSING",
    )
