"""`maia audit`: who published, saw or was refused what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.ages import instant_ago
from maia.cli.read.instants import now, parse_instant_text, show_instant, span_of
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.output import note, write_json
from maia.cli.show.tables import draw_table
from maia.encoding import did_you_mean
from maia.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from maia.home import Folder
    from maia.log import AuditRow

app = new_app()


@app.command(
    epilog=examples("maia audit --since 2026-06-01", "maia audit --kind refuse --as doctor --json | jq '.rows[].code'")
)
def audit(
    *,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="publish, deliver, withhold, refuse, … Repeatable."),
    ] = None,
    client: Annotated[str | None, principal_option("--as", help="Only what this client did.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="INSTANT", help="From this instant on; `30d` is so long ago.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many, the newest.")] = 1000,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Show the audit of a home: counts, codes and chains by hash, never values of events."""
    from heapq import nlargest

    from maia.home import Folder, Home
    from maia.log import AUDIT_KINDS, read_audit

    for word in kind or ():
        if word not in AUDIT_KINDS:
            near = did_you_mean(word, AUDIT_KINDS) or f"; there are {', '.join(AUDIT_KINDS)}"
            raise UsageError(f"the audit has no kind `{word}`{near}", code="AUDIT_KIND")
    opened = Home.open(home)
    place = Folder(home)
    wanted = None if client is None else {place.key(client).fingerprint, client}
    rows = nlargest(
        limit + 1,
        (
            row
            for row in read_audit(opened.path / "audit", since=_since(since))
            if (not kind or row.kind in kind) and (wanted is None or row.principal in wanted)
        ),
        key=lambda row: (row.at, row.kind, row.source, row.subject, row.code),
    )
    shown = rows[:limit][::-1]
    if json:
        write_json({"rows": [_to_json(row) for row in shown], "more": len(rows) > limit})
        return
    if not shown:
        note("the audit has no such rows")
        return
    _show(shown, place, {name.type_id.hex(): name.name for name in opened.types.names()})
    if len(rows) > limit:
        note(f"showing the newest {limit}; --limit N shows more")


def _since(text: str | None) -> datetime | None:
    if text is None:
        return None
    return parse_instant_text(text, at=now()) if span_of(text) is None else instant_ago(text, at=now())


def _to_json(row: AuditRow) -> dict[str, object]:
    return {
        "at": show_instant(row.at), "kind": row.kind, "principal": row.principal, "type_id": row.type_id,
        "source": row.source, "subject": row.subject, "reason": row.code, "events": row.events,
        "clauses": list(row.clauses),
    }  # fmt: skip


def _show(rows: list[AuditRow], place: Folder, types: dict[str, str]) -> None:
    names = {key.fingerprint: name for name, key in place.keys.items()}
    cells = [
        (
            f"{row.at:%Y-%m-%d %H:%M:%S}", row.kind, names.get(row.principal, row.principal),
            types.get(row.type_id, row.type_id[:16]), row.code, str(row.events), _short(row.source),
        )
        for row in rows
    ]  # fmt: skip
    draw_table(("at", "kind", "who", "type", "code", "events", "what"), cells, right=("events",))


def _short(source: str) -> str:
    """Leave the folders of a log file out."""
    return source.rpartition("/")[2] if source.startswith("type=") else source
