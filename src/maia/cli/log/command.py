"""`maia log show|compact|expire|sweep|reassert|adopt|migrate`: look at a home's log and keep it in order."""

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
    from maia.home import Home
    from maia.log import Commit, EventLane

app = new_app("Show, compact and expire the log of a home.")

_DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and change nothing.")]
_Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@app.command(
    epilog=examples("maia log show", "maia log show --limit 5 --json", "maia log show --type uk.gov.pito.Numberplate")
)
def show(
    type_: Annotated[
        str | None, typer.Option("--type", metavar="NAME", help="Only commits of this event type, in any version.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many, the newest.")] = 50,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Show the commits of the log: what each publication added. Whoever holds the log can see this, and no more."""
    import maia
    from maia.domain import find_type_id
    from maia.log import read_place

    domain = maia.open(home)
    opened, log = domain.home, domain.log
    lanes = [lane for lane in log.lanes() if lane.count or lane.finding]
    expired = sum(read_place(lane.floor)[0].number + 1 for lane in lanes)
    about = None if type_ is None else find_type_id(opened, type_).hex()
    found = [commit for commit in log.commits() if about in (None, commit.type_id)]
    commits = found[-limit:]
    if json:
        write_json(
            {
                "lanes": [_lane_to_json(lane) for lane in lanes],
                "expired": expired,
                "commits": [_to_json(commit) for commit in commits],
            }
        )
        return
    if not commits:
        empty = "the log is empty" if about is None else "the log has nothing of this type"
        note("everything in the log has expired" if expired else empty)
    else:
        _show(opened, commits)
    if commits and expired:
        note(f"{counted(expired, 'commit has', 'commits have')} expired")
    for lane in lanes:
        if lane.alarm is not None:
            note(f"alarm: {lane.alarm}")
        if lane.ignored:
            note(f"lane {lane.lane}: {counted(lane.ignored, 'object')} that its origin did not sign")
        if lane.finding is not None:
            note(f"finding: {lane.finding}")


@app.command(epilog=examples("maia log compact", "maia log compact --target 256MB --dry-run"))
def compact(
    target: Annotated[
        str, typer.Option("--target", metavar="SIZE", help="Size of a rewritten file, at most; it is held in memory.")
    ] = "128MB",
    dry_run: _DryRun = False,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Rewrite small files of this domain's own lanes into larger ones. Parcels stay as they are, byte for byte.

    Readers and publishers may work meanwhile.
    """
    from maia.domain import Domain
    from maia.log import compact as rewrite

    with Domain.open(home) as domain:
        done = rewrite(domain.log, domain.lanes, at=now(), target=parse_size(target), dry_run=dry_run)
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
    """Remove the events of commits older than an age, from the beginning of this domain's own lanes on.

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
        behind = undelivered(opened, found)
        if behind:
            note(f"warning: the outbox of this home has not read {counted(behind, 'commit')} of them yet")
        note(f"expires {commits}: {events} in {counted(found.files, 'file')}")
    if found.commits and not dry_run:
        if not yes:
            confirm(f"Remove {events} for ever?", otherwise="nothing was removed")
        found = expire_log(opened, before=before, at=at)
    if json:
        write_json(
            {"lanes": found.upto, "commits": found.commits, "events": found.events, "files": found.files,
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
    """Remove files of own lanes and of the outbox that nothing names: left by what was killed. Nobody reads them."""
    from maia.domain import Domain, sweep_home

    domain = Domain.open(home)
    before = instant_ago(older_than, at=now())
    found = sweep_home(domain, keep_newer_than=before, dry_run=True)
    if found and not dry_run:
        if not yes:
            confirm(f"Remove {counted(len(found), 'file')}?", otherwise="nothing was removed")
        found = sweep_home(domain, keep_newer_than=before)
    if json:
        write_json({"files": found, "done": not dry_run})
        return
    for name in found:
        write_line(name)
    if not found:
        write_line("nothing to remove")


@app.command(epilog=examples("maia log reassert", "maia log reassert --json"))
def reassert(home: options.Home = Path(), json: options.Json = False) -> None:
    """Compare this domain's lanes with its own record, and put again what the log lost or somebody exchanged."""
    from maia.domain import Domain

    with Domain.open(home) as domain:
        put = domain.lanes.reassert(at=now(), depth=None)
    if json:
        write_json({"put": put})
    else:
        write_line(f"put {counted(put, 'record')} again" if put else "the log has every record of this domain")
        note("records and evidence were compared; `maia doctor` looks at the files with the events")


@app.command(epilog=examples("maia log adopt", "maia log adopt --yes"))
def adopt(yes: _Yes = False, home: options.Home = Path(), json: options.Json = False) -> None:
    """Take over what the log holds of this domain beyond its own record, after a home was restored from a backup.

    Nothing is published until then. Do this only when no other home works with the same key.
    """
    from maia.domain import Domain

    if not yes:
        confirm("Take over what the log says?", otherwise="nothing was changed")
    with Domain.open(home) as domain:
        adopted = domain.lanes.adopt()
    if json:
        write_json({"adopted": adopted})
    else:
        write_line(f"took over {counted(adopted, 'record')}")


@app.command(epilog=examples("maia log migrate", "maia log migrate --json"))
def migrate(
    home: options.Home = Path(),
    without_damaged: Annotated[
        bool,
        typer.Option("--without-damaged", help="Leave out what is damaged or missing, instead of doing nothing."),
    ] = False,
    json: options.Json = False,
) -> None:
    """Make lanes of a log of the format before them: sign what this domain's broker published.

    Nothing of the old log is removed. Each domain that published does this in its own home. Segments that are not what
    was committed, or are missing, are named, and nothing is done before they are brought back or given up: nobody
    signed that they have expired.
    """
    from maia.domain import Domain
    from maia.log import migrate as take_over

    with Domain.open(home) as domain:
        broker = domain.home.broker.public_key.key_id.hex()
        done = take_over(domain.log, domain.lanes, broker, at=now(), without_damaged=without_damaged)
        domain.home.note_lanes()
    others = done.others or {}
    if json:
        left: dict[str, object] = {"damaged": list(done.damaged), "expired": list(done.expired)}
        write_json({"commits": done.commits, "events": done.events, "others": others, **left})
        return
    write_line(f"took over {counted(done.commits, 'commit')}, {counted(done.events, 'event')}")
    for path in done.damaged:
        note(f"left out `{path}`: it is not what was committed")
    for path in done.expired:
        note(f"left out `{path}`: it is missing, and said to have expired")
    for other, count in sorted(others.items()):
        note(f"{counted(count, 'commit')} of broker {other[:16]}: run `maia log migrate` in its home")


def _lane_to_json(lane: EventLane) -> dict[str, object]:
    return {
        "lane": lane.name, "place": lane.end, "floor": lane.floor, "ignored": lane.ignored,
        "alarm": None if lane.alarm is None else lane.alarm.code,
        "finding": None if lane.finding is None else lane.finding.code,
    }  # fmt: skip


def _to_json(commit: Commit) -> dict[str, object]:
    from maia.log import instant_of

    return {
        "commit": commit.sequence, "publication": commit.name, "type_id": commit.type_id, "origin": commit.origin,
        "at": show_instant(instant_of(commit)), "events": commit.events, "refused": commit.refused,
        "parcels": sum(file.parcels for file in commit.files), "files": [file.path for file in commit.files],
        "octets": sum(file.size for file in commit.files), "digest": commit.digest,
    }  # fmt: skip


def _show(home: Home, commits: list[Commit]) -> None:
    from maia.log import instant_of
    from maia.principals import KeyId

    types = {name.type_id.hex(): name.name for name in home.types.names()}
    names = home.folder.names
    numbers = ("commit", "events", "refused", "parcels", "size")
    rows = [
        (
            str(commit.sequence), f"{instant_of(commit):%Y-%m-%d %H:%M:%S}",
            types.get(commit.type_id, commit.type_id[:16]),
            names.get(KeyId(bytes.fromhex(commit.origin)), commit.origin[:16]), str(commit.events),
            str(commit.refused), str(sum(file.parcels for file in commit.files)),
            show_size(sum(file.size for file in commit.files)), commit.name,
        )
        for commit in commits
    ]  # fmt: skip
    titles = ("commit", "at", "type", "broker", "events", "refused", "parcels", "size", "publication")
    draw_table(titles, rows, right=numbers)
