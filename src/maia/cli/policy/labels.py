"""`maia policy labels`: what event types carry, to whom it may flow now, and who can make exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.output import answer, printable

if TYPE_CHECKING:
    from maia.home import Home

app = new_app()


@app.command(
    epilog=examples(
        "maia policy labels",
        "maia policy labels --tag identifiable --json",
        "maia policy labels --as ali",
        "maia policy labels --produce pathlab",
        "maia policy labels --names",
        "maia policy labels --outside uk.nhs.path_report",
    )
)
@unpacked
def labels(
    *,
    tag: Annotated[
        str | None, typer.Option("--tag", metavar="TAG", help="Which components can declassify this flow tag.")
    ] = None,
    produce: Annotated[
        str | None, typer.Option("--produce", metavar="TAG", help="Who can produce a part with this integrity tag.")
    ] = None,
    as_: Annotated[str | None, principal_option("--as", help="What may flow to this client now.")] = None,
    names: Annotated[
        bool, typer.Option("--names", help="The flow tags as this home has them: number here, and name elsewhere.")
    ] = False,
    outside: Annotated[
        str | None, typer.Option("--outside", metavar="TYPE", help="The labels of a type as other domains name them.")
    ] = None,
    place: CommandPlace,
) -> None:
    """Show the label policy in `policy/labels.toml`: attributes, a client's flow tags, and who can declassify one.

    Nobody but the components that are listed can let out what carries a flow tag. With --produce: everybody who can
    make a part that carries an integrity tag, as a writer, an owner or a component that endorses it. A name that stands
    for no type or attribute here is refused, as every read is until it is put right.

    A flow tag with an address under `names` has that name elsewhere. --outside gives what a partner writes into its own
    policy; a URI for which its owner's certificate is not here is TAG_UNRESOLVED, and what carries it is closed.
    """
    from maia.domain import Domain, check_label_policy, lost_tags, read_label_policy, reader_of_client, tag_sequence
    from maia.home import Home

    if produce is not None:
        _tell_producers(place, produce)
        return
    home = Home.open(place.home)
    if names:
        _tell_names(place, home)
        return
    if outside is not None:
        _tell_outside(place, home, outside)
        return
    policy = read_label_policy(home, at=place.instant)
    if tag is not None:
        able = policy.who_declassifies(tag)
        found = tag_sequence(home, policy, tag, at=place.instant)
        sequence = [{"tag": name, "until": None if end is None else end.isoformat()} for name, end in found]
        moved = [f"{item['tag']}  until: {item['until'] or '-'}" for item in sequence] if len(sequence) > 1 else []
        told: dict[str, object] = {"tag": tag, "declassify": list(able), "sequence": sequence}
        answer(told, *map(printable, (*able, *moved)), json=place.json)
        return
    if as_ is not None:
        reader = reader_of_client(home, policy, as_, at=place.instant)
        lost = {
            item.tag: item.at.isoformat()
            for item in reversed(lost_tags(home, policy, at=place.instant, client=as_))
            if item.tag not in reader.label.secrecy
        }
        flows = {
            "S": sorted(reader.label.secrecy),
            "I": sorted(reader.label.integrity),
            "frames": sorted(reader.frames),
        }
        lines = (f"{name}: {', '.join(tags) or '-'}" for name, tags in flows.items())
        earlier = (f"before {lost[name]}: {name}" for name in sorted(lost))
        answer({"client": as_, **flows, "lost": lost}, *map(printable, (*lines, *earlier)), json=place.json)
        return
    check_label_policy(home, policy, Domain.open(place.home).known(at=place.instant))
    types = {name: {item: label.shown() for item, label in said.items()} for name, said in sorted(policy.types.items())}
    rows = [
        {"type": name, "attribute": item, "S": sorted(label.secrecy), "I": sorted(label.integrity)}
        for name, said in types.items()
        for item, label in said.items()
    ]
    lines = (
        f"{row['type']} {row['attribute']}  S: {', '.join(row['S']) or '-'}  I: {', '.join(row['I']) or '-'}"
        for row in rows
    )
    answer({"labels": rows}, *map(printable, lines), json=place.json)


def _tell_names(place: CommandPlace, home: Home) -> None:
    from maia.domain import tags_here

    found = [
        {
            "tag": item.tag,
            "uri": item.uri,
            "number": item.number,
            "state": "known" if item.resolved else "TAG_UNRESOLVED",
        }
        for item in tags_here(home, at=place.instant)
    ]
    lines = (
        f"{row['tag']}  number: {'-' if row['number'] is None else row['number']}  "
        f"elsewhere: {row['uri'] or '-'}  {row['state']}"
        for row in found
    )
    answer({"tags": list[object](found)}, *map(printable, lines), json=place.json)


def _tell_outside(place: CommandPlace, home: Home, name: str) -> None:
    from json import dumps

    from maia.domain import labels_outside

    found = {
        attribute: {"S": sorted(label.secrecy), "I": sorted(label.integrity)}
        for attribute, label in labels_outside(home, name, at=place.instant).items()
    }
    # What JSON writes for texts and lists of them is TOML as well.
    lines = (
        f"{dumps(attribute)} = {{ S = {dumps(label['S'])}, I = {dumps(label['I'])} }}"
        for attribute, label in found.items()
    )
    answer({"type": name, "labels": found}, f"[types.{dumps(name)}]", *map(printable, lines), json=place.json)


def _tell_producers(place: CommandPlace, tag: str) -> None:
    from maia.domain import Domain, who_produces

    found = who_produces(Domain.open(place.home), tag, at=place.instant)
    answer(
        {"tag": tag, "producers": [one.to_json() for one in found.producers], "doubts": list(found.doubts),
         "complete": found.complete},
        *(str(one) for one in found.producers), *(f"in doubt: {doubt}" for doubt in found.doubts), json=place.json,
    )  # fmt: skip
