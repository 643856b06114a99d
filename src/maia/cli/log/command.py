"""`maia log show|compact|expire|sweep`: look at a home's log and keep it in order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.ages import instant_ago, parse_size, show_size
from maia.cli.read.answers import confirm
from maia.cli.read.instants import now, show_instant
from maia.cli.read.options import examples, new_app
from maia.cli.show.output import note, write_json, write_line
from maia.cli.show.tables import draw_table
from maia.encoding import counted

if TYPE_CHECKING:
    from datetime import datetime

    from maia.home import Home
    from maia.log import Commit

app = new_app("Show, compact and expire the log of a home.")

_DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and change nothing.")]
_Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@app.command(epilog=examples("maia log show", "maia log show --limit 5 --json"))
def show(
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many, the newest.")] = 50,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Show the commits of the log: what each publication added. Whoever holds the log can see this, and no more."""
    from collections import deque

    from maia.home import Home
    from maia.log import LogDirectory

    opened = Home.open(home)
    log = LogDirectory(opened.log_path)
    expired, latest = log.expired(), log.latest()
    commits = deque(log.commits(after=max(expired, latest - limit)), maxlen=limit)
    if json:
        rows = [_to_json(commit, log.instant(commit, now=now())) for commit in commits]
        write_json({"latest": latest, "expired": expired, "commits": rows})
        return
    if not commits:
        note("the log is empty" if expired < 0 else "everything in the log has expired")
        return
    _show(opened, [(commit, log.instant(commit, now=now())) for commit in commits])
    if expired >= 0:
        note(f"commits 0 to {expired} have expired")


@app.command(epilog=examples("maia log compact", "maia log compact --target 256MB --dry-run"))
def compact(
    target: Annotated[
        str, typer.Option("--target", metavar="SIZE", help="Size of a rewritten file, at most; it is held in memory.")
    ] = "128MB",
    dry_run: _DryRun = False,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Rewrite small files into larger ones. Parcels stay as they are, byte for byte, and so do the commits.

    Readers and publishers may work meanwhile.
    """
    from maia.home import Home
    from maia.log import LogDirectory
    from maia.log import compact as rewrite

    log = LogDirectory(Home.open(home).log_path)
    done = rewrite(log, target=parse_size(target), dry_run=dry_run)
    if json:
        write_json({"before": done.before, "after": done.after, "octets": done.octets, "done": not dry_run})
    elif not done.before:
        write_line("nothing to rewrite")
    else:
        would = "would rewrite" if dry_run else "rewrote"
        write_line(f"{would} {counted(done.before, 'file')} into {done.after}, {show_size(done.octets)}")


@app.command(epilog=examples("maia log expire --older-than 30d --dry-run", "maia log expire --older-than 30d --yes"))
def expire(
    older_than: Annotated[str, typer.Option("--older-than", metavar="AGE", help="How old: 12h, 30d, 1y.")],
    *,
    dry_run: _DryRun = False,
    yes: _Yes = False,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Remove the events of commits older than an age, from the beginning of the log on.

    A reader that still needs them is told so (LOG_EXPIRED) and gets no gap; a new one starts behind them. This cannot
    be undone.
    """
    from maia.domain import expire_log, undelivered
    from maia.home import Home

    opened, at = Home.open(home), now()
    before = instant_ago(older_than, at=at)
    found = expire_log(opened, before=before, at=at, dry_run=True)
    commits, events = counted(found.commits, "commit"), counted(found.events, "event")
    if found.commits:
        behind = undelivered(opened, found.upto)
        if behind is not None:
            note(f"warning: the outbox of this home has read up to commit {behind} only, and would have to start anew")
        note(f"expires {commits} up to {found.upto}: {events} in {counted(found.files, 'file')}")
    if found.commits and not dry_run:
        if not yes:
            confirm(f"Remove {events} for ever?", otherwise="nothing was removed")
        found = expire_log(opened, before=before, at=at)
    if json:
        write_json(
            {"upto": found.upto, "commits": found.commits, "events": found.events, "files": found.files,
             "done": bool(found.commits) and not dry_run}
        )  # fmt: skip
    elif found.commits:
        write_line(f"{'would expire' if dry_run else 'expired'} {commits}, {events}")
    else:
        write_line("nothing is that old")


@app.command(epilog=examples("maia log sweep --dry-run", "maia log sweep --older-than 1d --yes"))
def sweep(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="How old; longer than any publication runs.")
    ] = "1d",
    *,
    dry_run: _DryRun = False,
    yes: _Yes = False,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Remove files that nothing names: left by tasks and upkeep that were killed. Nobody reads them."""
    from maia.home import Home
    from maia.log import LogDirectory

    log = LogDirectory(Home.open(home).log_path)
    before = instant_ago(older_than, at=now())
    found = log.sweep(keep_newer_than=before, dry_run=True)
    if found and not dry_run:
        if not yes:
            confirm(f"Remove {counted(len(found), 'file')}?", otherwise="nothing was removed")
        found = log.sweep(keep_newer_than=before)
    if json:
        write_json({"files": found, "done": not dry_run})
        return
    for name in found:
        write_line(name)
    if not found:
        write_line("nothing to remove")


def _to_json(commit: Commit, at: datetime) -> dict[str, object]:
    return {
        "commit": commit.sequence, "publication": commit.name, "type_id": commit.type_id, "origin": commit.origin,
        "at": show_instant(at), "events": commit.events, "refused": commit.refused,
        "parcels": sum(file.parcels for file in commit.files), "files": [file.path for file in commit.files],
        "octets": sum(file.size for file in commit.files), "digest": commit.digest,
    }  # fmt: skip


def _show(home: Home, commits: list[tuple[Commit, datetime]]) -> None:
    from maia.principals import KeyId

    types = {name.type_id.hex(): name.name for name in home.types.names()}
    names = home.folder.names
    numbers = ("commit", "events", "refused", "parcels", "size")
    rows = [
        (
            str(commit.sequence), f"{at:%Y-%m-%d %H:%M:%S}", types.get(commit.type_id, commit.type_id[:16]),
            names.get(KeyId(bytes.fromhex(commit.origin)), commit.origin[:16]), str(commit.events),
            str(commit.refused), str(sum(file.parcels for file in commit.files)),
            show_size(sum(file.size for file in commit.files)), commit.name,
        )
        for commit, at in commits
    ]  # fmt: skip
    titles = ("commit", "at", "type", "broker", "events", "refused", "parcels", "size", "publication")
    draw_table(titles, rows, right=numbers)
