"""Topics of a home: the attributes that a new one has, and the tree of those that there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from maia.authority import Verifier
from maia.cli.read.bundles import CommandPlace
from maia.cli.show.output import note, printable, write_json, write_line
from maia.cli.show.tables import draw_table
from maia.cli.type.view import attribute_to_json, name_to_json, show_name
from maia.encoding import counted
from maia.errors import NotFoundError, UsageError, VerificationError
from maia.events import (
    TOPIC,
    Add,
    Attribute,
    AttributeType,
    EventType,
    SequenceUids,
    TopicPattern,
    TypeName,
    first_attributes,
    lineage,
)
from maia.home import Folder, verify_with_registry, words
from maia.principals import principal_id


def top_attributes(texts: Sequence[str]) -> tuple[Attribute, ...]:
    """Give the attributes of a topic at the top: `topic`, and what it is to hold."""
    return first_attributes([Add(TOPIC, AttributeType.STRING), *map(words.parse_add, texts)], SequenceUids())


def super_topic(folder: Folder, name: TypeName, texts: Sequence[str]) -> EventType:
    """Find the topic above a new one, whose attributes it has.

    Raises:
        NotFoundError: It is not defined: ``TOPIC_NOT_FOUND``.
        UsageError: The new one asks for attributes of its own: ``TOPIC_ATTRIBUTES``.
    """
    above = lineage(name.name)[-2]
    found = [item for item in folder.versions(principal_id(name.owner), above) if item.options.topic]
    if not found:
        raise NotFoundError(f"there is no topic `{above}` to define one below; define it first", code="TOPIC_NOT_FOUND")
    if texts:
        raise UsageError(f"a topic below `{above}` has the attributes of that one", code="TOPIC_ATTRIBUTES")
    return found[0]


def show_tree(place: CommandPlace) -> None:
    """Show all topics of a home, those of an owner together."""
    found = sorted(_topics(place), key=lambda item: (item[0].name.owner_id, item[0].name.name.split(".")))
    if place.json:
        topics = [{**name_to_json(item.name), "verified": verified} for item, verified in found]
        write_json({"topics": topics})
        return
    rows = []
    for item, verified in found:
        *above, last = item.name.name.split(".")
        owner = words.show_subject(item.name.owner, place.folder)
        rows.append((f"{'  ' * len(above)}{printable(last)}", owner, "verified" if verified else "not verified"))
    if rows:
        draw_table(("topic", "owner", "definition"), rows)
    else:
        note("no topics here; `maia topic define` makes one")


def show_topic(place: CommandPlace, text: str) -> None:
    """Show one topic: its attributes, what publishing under it needs, and what is below it."""
    topic = words.find_topic(place.folder, text)
    name = topic.name
    below = [
        item.name.name
        for item, verified in _topics(place)
        if verified and item.name.owner_id == name.owner_id and TopicPattern(name.name).includes(item.name.name)
    ]
    others = sorted(set(below) - {name.name})
    verified = name.name in below
    if place.json:
        write_json(
            {
                **name_to_json(name), "verified": verified, "below": others, "publish_needs": list(lineage(name.name)),
                "attributes": [attribute_to_json(item) for item in topic.attributes],
            }
        )  # fmt: skip
        return
    write_line(f"{show_name(name, place.folder)}{'' if verified else ': not verified'}")
    draw_table(("attribute", "uid", "type"), [(item.name, item.uid, item.type.value) for item in topic.attributes])
    write_line(f"publishing needs a right on {', '.join(printable(item) for item in lineage(name.name))}")
    shown = f": {', '.join(printable(item) for item in others)}" if others else ""
    write_line(f"subscribing brings {counted(len(others), 'sub-topic')}{shown}")


def _topics(place: CommandPlace) -> Iterator[tuple[EventType, bool]]:
    """List the topics of a home, each with whether it speaks for its owner now."""
    folder = place.folder
    config = folder.config
    network = None if config is None or config.network is None else "/".join(config.network)
    verifier, on = Verifier(statements=folder.book()), words.split_network(network, folder)
    for name in folder.types.names():
        for found in folder.types.find(name):
            if not found.definition.options.topic:
                continue
            try:
                verify_with_registry(folder.types, found, verifier=verifier, at=place.instant, network=on)
            except VerificationError:
                yield found.definition, False
            else:
                yield found.definition, True
