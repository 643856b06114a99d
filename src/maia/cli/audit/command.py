"""`maia audit`: who wanted, published, saw or was refused what; `maia audit verify`: whether that is all of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.audit import evidence, proofs
from maia.cli.read import options
from maia.cli.read.ages import instant_ago
from maia.cli.read.files import read_source
from maia.cli.read.instants import now, parse_instant_text, show_instant, span_of
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import note, write_json, write_line
from maia.cli.show.tables import draw_table
from maia.encoding import counted, did_you_mean
from maia.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from maia.home import Folder
    from maia.log import AuditRow, CheckedAudit

app = new_app()
app.add_typer(proofs.app)
app.add_typer(evidence.app)


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        "maia audit --since 2026-06-01",
        "maia audit --type uk.gov.pito.Numberplate --kind deliver",
        "maia audit --kind refuse --as doctor --json | jq '.rows[].code'",
        "maia audit verify",
        "maia audit replay",
    ),
)
def audit(
    context: typer.Context,
    *,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="intent, result, publish, deliver, refuse, … Repeatable."),
    ] = None,
    client: Annotated[str | None, principal_option("--as", help="Only what this client did.")] = None,
    type_: Annotated[
        str | None, typer.Option("--type", metavar="NAME", help="Only what is about this event type, in any version.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="INSTANT", help="From this instant on; `30d` is so long ago.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many, the newest.")] = 1000,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Show the audit of a home: counts, codes and chains by hash, never values of events.

    An intent stands there before the first row is handed out, and its result after the last. One without a result is
    RUNNING, or UNFINISHED when its process is gone.
    """
    if context.invoked_subcommand is not None:
        return
    from heapq import nlargest
    from itertools import chain

    from maia.domain import find_type_id, take_results
    from maia.home import Folder, Home
    from maia.log import AUDIT_KINDS, read_audit, read_waiting

    for word in kind or ():
        if word not in AUDIT_KINDS:
            near = did_you_mean(word, AUDIT_KINDS) or f"; there are {', '.join(AUDIT_KINDS)}"
            raise UsageError(f"the audit has no kind `{word}`{near}", code="AUDIT_KIND")
    opened = Home.open(home)
    take_results(opened)
    place = Folder(home)
    wanted = None if client is None else {place.key(client).fingerprint, client}
    about = None if type_ is None else find_type_id(opened, type_).hex()
    first = _since(since)
    waiting = (row for row in read_waiting(opened.audit_path, at=now()) if first is None or row.at >= first)
    rows = nlargest(
        limit + 1,
        (
            row
            for row in chain(read_audit(opened.audit_path, since=first), waiting)
            if (not kind or row.kind in kind)
            and (wanted is None or row.principal in wanted)
            and (about is None or row.type_id == about)
        ),
        key=lambda row: (row.at, row.operation or -1, row.kind, row.source, row.subject, row.code),
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


@app.command(
    epilog=examples(
        "maia audit verify",
        "maia audit verify --checkpoint last-year.checkpoint",
        "maia audit verify --json | jq '.breaks[].code'",
    )
)
def verify(
    *,
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option("--checkpoint", metavar="FILE", help="What was stated before, as somebody kept it. Repeatable."),
    ] = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> int:
    """Check that the audit is whole: every entry signed and chained, none missing, changed, moved or cut off.

    Whoever has the home and the broker's key can write all of it anew, and a home that was put back as a whole looks as
    it looked then: both are found with a checkpoint that somebody kept elsewhere, and not without.
    """
    from maia.domain import check_home_audit
    from maia.home import Home
    from maia.log import parse_checkpoint

    kept = [parse_checkpoint(read_source(str(path))) for path in checkpoint or ()]
    found = check_home_audit(Home.open(home), at=now(), checkpoints=kept)
    code = ExitCode.DONE if found.sound else ExitCode.NOT_VERIFIED
    if json:
        write_json(_checked_to_json(found), code=code)
        return code
    number, digest = found.head
    since = "" if found.begun is None else f" since {found.begun:%Y-%m-%d %H:%M:%S}"
    write_line(f"{counted(found.entries, 'entry', 'entries')} in {counted(found.files, 'file')}{since}")
    if found.entries:
        write_line(f"head: entry {number}, {digest}")
    if found.earlier:
        write_line(f"{counted(found.earlier, 'file')} of an audit before the journal")
    if found.unfinished:
        write_line(f"unfinished: {', '.join(map(str, found.unfinished[:20]))}")
    for item in found.breaks:
        write_line(f"wrong: [{item.code}] {item.where}: {item.what}")
    write_line("the chain is whole and reaches the remembered head" if found.sound else "the audit is not whole")
    return code


def _checked_to_json(found: CheckedAudit) -> dict[str, object]:
    number, digest = found.head
    return {
        "sound": found.sound, "entries": found.entries, "files": found.files, "earlier": found.earlier,
        "begun": None if found.begun is None else show_instant(found.begun),
        "head": {"number": number, "digest": digest}, "unfinished": found.unfinished, "running": found.running,
        "breaks": [{"code": item.code, "where": item.where, "what": item.what} for item in found.breaks],
    }  # fmt: skip


def _since(text: str | None) -> datetime | None:
    if text is None:
        return None
    return parse_instant_text(text, at=now()) if span_of(text) is None else instant_ago(text, at=now())


def _to_json(row: AuditRow) -> dict[str, object]:
    return {
        "at": show_instant(row.at), "kind": row.kind, "principal": row.principal, "type_id": row.type_id,
        "source": row.source, "subject": row.subject, "reason": row.code, "events": row.events,
        "clauses": list(row.clauses), "operation": row.operation, "certificates": list(row.certificates),
        "attributes": list(row.attributes), "closed": list(row.closed), "filter": row.filter, "plan": row.plan,
        "decision": row.decision,
    }  # fmt: skip


def _show(rows: list[AuditRow], place: Folder, types: dict[str, str]) -> None:
    names = {key.fingerprint: name for name, key in place.keys.items()}
    cells = [
        (
            "" if row.operation is None else str(row.operation), f"{row.at:%Y-%m-%d %H:%M:%S}", row.kind,
            names.get(row.principal, row.principal),
            types.get(row.type_id, row.type_id[:16]), row.code, str(row.events), _short(row.source),
        )
        for row in rows
    ]  # fmt: skip
    draw_table(("n", "at", "kind", "who", "type", "code", "events", "what"), cells, right=("n", "events"))


def _short(source: str) -> str:
    """Leave the folders of a log file out."""
    return source.rpartition("/")[2] if source.startswith("type=") else source
