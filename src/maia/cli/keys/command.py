"""`maia keys`: the key groups that a home manages, and those that its broker joins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.instants import now
from maia.cli.read.options import examples, new_app
from maia.cli.show.output import answer, note, printable, write_json, write_line
from maia.encoding import counted

app = new_app("Show and refresh the key groups that a home manages; join those of a type.")

_Group = Annotated[
    str,
    typer.Argument(
        metavar="TYPE/ATTRIBUTE",
        help="A key group: a type's name, a slash, and an attribute by name or uid; `*` is the key of whole events.",
    ),
]
_Type = Annotated[str, typer.Argument(metavar="TYPE", help="An event type that this home knows, by its name.")]
_Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many, the newest.")]


@app.command(epilog=examples("maia keys status", "maia keys status --json"))
def status(home: options.Home = Path(), json: options.Json = False) -> None:
    """Tell how the key manager of this home stands: groups, brokers, what is due next and what needs a hand.

    Ends with 1 when a group waits for a repair.
    """
    from maia.cli.keys.view import Keys

    keys = Keys.open(home)
    found = keys.manager.status()
    behind, unpublished = sum(item.behind for item in found), sum(item.unpublished for item in found)
    due = min((item.due for item in found if item.due is not None), default=None)
    code = 1 if behind else 0
    if json:
        write_json(
            {
                "manager": keys.manager.public_key.fingerprint, "groups": len(found),
                "places": sum(item.members for item in found), "due": keys.instant(due), "unpublished": unpublished,
                "behind": behind,
            },
            code=code,
        )  # fmt: skip
    else:
        write_line(f"manager      {keys.manager.public_key.fingerprint}")
        taken = counted(sum(item.members for item in found), "place")
        write_line(f"groups       {len(found)}, with {taken} taken")
        write_line(f"next due     {keys.instant(due) or 'nothing'}")
        write_line(f"unpublished  {unpublished}")
        for item in found:
            if item.behind:
                note(f"warning: {keys.name(item.group)} is older than the log shows; see `maia keys repair`")
    raise typer.Exit(code)


@app.command(epilog=examples("maia keys groups", "maia keys groups --type uk.gov.pito.Numberplate --json"))
def groups(
    type_: Annotated[str | None, typer.Option("--type", metavar="NAME", help="Only those of one event type.")] = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """List the key groups: their newest epoch, since when, how many brokers are inside, when the key changes next."""
    from maia.cli.keys.view import Keys, draw_groups

    keys = Keys.open(home)
    found = [item for item in keys.manager.status() if type_ is None or item.group.type_id in keys.type_ids(type_)]
    if json:
        write_json({"groups": [keys.to_json(item) for item in found]})
    elif not found:
        note("this home manages no key groups: a type's are opened when the home first publishes or reads it")
    else:
        draw_groups(keys, found)


@app.command(epilog=examples("maia keys refresh uk.gov.pito.Numberplate/location"))
def refresh(group: _Group, home: options.Home = Path(), json: options.Json = False) -> None:
    """Change a group's key now, for whatever reason; brokers follow by reading the log."""
    from maia.cli.keys.view import Keys

    keys = Keys.open(home)
    wanted = keys.find(group)
    number = keys.manager.refresh(wanted, at=now())
    start = keys.manager.history(wanted)[-1].start
    name, begins = keys.name(wanted), keys.instant(start)
    answer({"group": name, "epoch": number, "start": begins}, f"{name}: epoch {number} begins at {begins}", json=json)


@app.command(
    epilog=examples("maia keys history uk.gov.pito.Numberplate/location", "maia keys history Sighting/* --json")
)
def history(group: _Group, limit: _Limit = 50, home: options.Home = Path(), json: options.Json = False) -> None:
    """List the epochs of a group with their causes and costs, and what happened to its membership."""
    from maia.cli.keys.view import Keys, draw_history, epoch_to_json

    keys = Keys.open(home)
    wanted = keys.find(group)
    epochs, changes = keys.manager.history(wanted)[-limit:], keys.manager.changes(wanted)[-limit:]
    if json:
        members = [
            {"at": item.at.isoformat(), "kind": item.kind, "broker": keys.broker(item.member)} for item in changes
        ]
        write_json({"group": keys.name(wanted), "epochs": [epoch_to_json(keys, e) for e in epochs], "changes": members})
    elif not epochs and not changes:
        note("nothing happened to this group yet")
    else:
        draw_history(keys, epochs, changes)


@app.command(epilog=examples("maia keys plot uk.gov.pito.Numberplate/location --out keys.svg"))
def plot(
    group: _Group,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the picture goes; .svg or .png.")],
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Draw a group's tree, and its refreshes against the changes of its membership. Needs `pip install maia[plot]`."""
    from maia.cli.keys.plot import draw_group
    from maia.cli.keys.view import Keys

    keys = Keys.open(home)
    wanted = keys.find(group)
    draw_group(keys, wanted, out)
    answer({"group": keys.name(wanted), "file": str(out)}, f"drew {keys.name(wanted)} to {out}", json=json)


@app.command(epilog=examples("maia keys repair uk.gov.pito.Numberplate/location"))
def repair(group: _Group, home: options.Home = Path(), json: options.Json = False) -> None:
    """Let a group go on after its database was restored from a backup that is older than the log.

    A new epoch begins after all that the log shows. Brokers that the log shows inside stay, everybody else joins again.
    Revocations that only the lost database knew of must be given again.
    """
    from maia.cli.keys.view import Keys

    keys = Keys.open(home)
    wanted = keys.find(group)
    number = keys.manager.repair(wanted, at=now())
    members = len(keys.manager.picture(wanted).places)
    line = f"{keys.name(wanted)}: goes on with epoch {number} and {counted(members, 'broker')}"
    answer({"group": keys.name(wanted), "epoch": number, "members": members}, line, json=json)


@app.command(epilog=examples("maia keys join uk.gov.pito.Numberplate", "maia keys join Sighting --json"))
def join(type_: _Type, home: options.Home = Path(), json: options.Json = False) -> None:
    """Let this home's broker join the key groups of a type, with its own certificates, and take its keys from the log.

    Asks the key manager that maia.toml names (`key_manager` under `[services]`, its public key as `key-manager` in
    keys/), else the one that this home runs itself. Joining again is harmless: it helps a broker that lost its keys.
    """
    from maia.clients import join_type

    joined = join_type(home, type_)
    if json:
        write_json(joined.to_json())
    else:
        for place in joined.places:
            start = "no key yet" if place.start is None else f"key since {place.start.isoformat(timespec='seconds')}"
            write_line(printable(f"{place.group}: {start}"))
    if any(place.start is None for place in joined.places):
        note(
            "some keys are not in this home's log yet; `log` in maia.toml must name the log that the manager writes to"
        )


@app.command(epilog=examples("maia keys leave uk.gov.pito.Numberplate"))
def leave(type_: _Type, home: options.Home = Path(), json: options.Json = False) -> None:
    """Let this home's broker leave the key groups of a type.

    What was sealed before can still be read. The groups' keys change when the broker's right ends, or in their period.
    """
    from maia.clients import leave_type

    left = leave_type(home, type_)
    answer(left.to_json(), *(f"left {place.group}" for place in left.places), json=json)
    if not left.places:
        note("this home was in no key group of the type")
