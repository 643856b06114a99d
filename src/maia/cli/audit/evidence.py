"""`maia audit replay|export`: what the audit says was decided, decided again, and written for an auditor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.ages import instant_ago
from maia.cli.read.instants import now, parse_instant_text, span_of
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import answer, note, printable, write_json, write_line
from maia.encoding import counted
from maia.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

app = new_app()
_Since = Annotated[
    str | None, typer.Option("--since", metavar="INSTANT", help="From this instant on; `30d` is so long ago.")
]


@app.command(
    epilog=examples(
        "maia audit replay",
        "maia audit replay 17 --json | jq '.decisions[].outcome'",
        "maia audit replay 17 --where \"ward = 'A'\"",
        "maia audit replay --from for-the-auditor --key trust",
    )
)
def replay(
    entries: Annotated[
        list[int] | None, typer.Argument(metavar="[ENTRY]...", min=0, help="Numbers of entries; all by default.")
    ] = None,
    *,
    since: _Since = None,
    where: Annotated[
        str | None, typer.Option("--where", metavar="FILTER", help="The filter that the client gave then.")
    ] = None,
    from_: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="What `maia audit export --evidence` wrote.")
    ] = None,
    key: Annotated[str | None, principal_option("--key", help="With --from: the key of that audit's broker.")] = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> int:
    """Decide again, offline, what the audit says was decided; exits 6 when an answer is another one now.

    A record names what decided: certificates, statements, definitions and policy, by digest. They are laid out anew,
    and the planner is asked what it was asked then, at the instant of then. What is missing or was changed refuses
    (exit code 4). What cannot be decided again is listed with the reason: it was recorded before decisions were, it
    asked somebody outside of the home, or it rests on the values of a filter, which no audit holds.
    """
    from maia.domain import replay_audit, replay_export
    from maia.home import Folder, Home

    if (from_ is None) != (key is None):
        raise UsageError("--from and --key go together", code="USAGE")
    if from_ is not None and key is not None:
        if where is not None:
            raise UsageError("only the home itself can tell whether a filter is the one of then", code="USAGE")
        found = replay_export(from_, Folder(home).key(key), entries, since=_since(since))
    else:
        found = replay_audit(Home.open(home), entries, since=_since(since), where=where)
    wrong = found.broken or (entries and found.count("cannot"))
    code = ExitCode.DIFFERS if found.differing else ExitCode.NOT_VERIFIED if wrong else ExitCode.DONE
    counts = {word: found.count(word) for word in ("same", "differs", "cannot")}
    if json:
        decisions = [item.to_json() for item in found.decisions]
        write_json({**counts, "complete": found.complete, "decisions": decisions}, code=code)
        return code
    for item in found.decisions:
        if item.outcome != "same" or entries:
            why = f": [{item.code}] {item.why}" if item.why else ""
            what = "" if item.decision is None else f" {item.decision.action} {item.decision.code}"
            write_line(printable(f"entry {item.entry} {item.row.kind} {item.row.subject}{what}: {item.outcome}{why}"))
    decided = counted(len(found.decisions), "decision")
    write_line(f"{decided}: {counts['same']} the same, {counts['differs']} differ, {counts['cannot']} cannot be told")
    return code


@app.command(
    epilog=examples(
        "maia audit export for-the-auditor",
        "maia audit export for-the-auditor --format parquet --since 2026-06-01",
        "maia audit export for-the-auditor --evidence",
    )
)
def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to; new, or empty.")],
    *,
    format_: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="`jsonl`, JSON lines, or `parquet`.")
    ] = "jsonl",
    since: _Since = None,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="With what decided, so that it can be decided again.")
    ] = False,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Write the decisions of the audit for an auditor, with the checkpoint and a proof of each entry.

    The auditor checks each with `maia audit check-proof` and the broker's public key, without this home. With
    `--evidence` the certificates, statements, definitions and policy that decided go along: then `maia audit replay
    --from` decides it again there. Files are for their owner alone (0600).
    """
    from maia.domain import export_audit
    from maia.home import Home

    made = export_audit(Home.open(home), folder, format_=format_, since=_since(since), evidence=evidence)
    answer(
        {"rows": made.rows, "entries": made.entries, "states": made.states, "size": made.size},
        f"{counted(made.rows, 'row')} of {counted(made.entries, 'entry', 'entries')}, proven against {made.size}",
        json=json,
    )
    if not json:
        note("hand over the broker's public key by another way")


def _since(text: str | None) -> datetime | None:
    if text is None:
        return None
    return parse_instant_text(text, at=now()) if span_of(text) is None else instant_ago(text, at=now())
