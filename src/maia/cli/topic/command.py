"""`maia topic define|show|grant`: topics, and rights on them.

A topic is an event type with a place in a tree of names. It lives with the home's types, and is verified before it
counts like any of them: `maia type add`, `verify` and `show` work on it too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from maia.cli.grant.issuing import Issuing
from maia.cli.read import options
from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.options import examples, new_app
from maia.cli.type.making import Making, Travel

app = new_app("Define and show topics, and give rights on them.")


@app.command(
    epilog=examples(
        "maia topic define exchange/MarketQuotes --attribute symbol:string --attribute price:decimal",
        "maia topic define exchange/MarketQuotes.Stocks",
    )
)
@unpacked
def define(
    name: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="The topic; dots part its components.")],
    *,
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            "--attribute",
            metavar="NAME:TYPE[:UID]",
            help="An attribute, of a topic at the top; those below have the same.",
        ),
    ] = None,
    travel: Travel,
    making: Making,
) -> None:
    """Define a topic, sign it, and keep it in the home.

    Every topic has the attribute `topic`, which holds its name. A topic below another one has the attributes of that
    one, and travels as it does unless something else is said.
    """
    from maia.cli.topic.tree import super_topic, top_attributes
    from maia.events import EventType, Options
    from maia.home import words

    full, chosen = words.new_name(name, making.folder), travel.options()
    if "." in full.name:
        above = super_topic(making.folder, full, attribute or ())
        chosen = above.options if chosen == Options() else chosen
        attributes = above.attributes
    else:
        attributes = top_attributes(attribute or ())
    making.keep(EventType(name=full, attributes=attributes, options=replace(chosen, topic=True)))


@app.command(epilog=examples("maia topic show", "maia topic show exchange/MarketQuotes.Stocks"))
@unpacked
def show(
    topic: Annotated[
        str | None, typer.Argument(metavar="TOPIC", help="OWNER/NAME, or NAME; all when left out.")
    ] = None,
    *,
    place: CommandPlace,
) -> None:
    """Show topics as a tree, each with whether its definition speaks for its owner now.

    Of one topic: its attributes, which rights publishing under it needs, and what is below it.
    """
    from maia.cli.topic.tree import show_topic, show_tree

    if topic is None:
        show_tree(place)
    else:
        show_topic(place, topic)


@app.command(
    epilog=examples(
        "maia topic grant --from exchange --to trader --topic exchange/MarketQuotes.Stocks --action subscribe",
        "maia topic grant --from exchange --to broker --topic MarketQuotes --action publish --sub-topics",
    )
)
@unpacked
def grant(
    *,
    topic: Annotated[str, typer.Option("--topic", metavar="TOPIC", help="OWNER/NAME, or NAME.")],
    action: Annotated[
        list[str] | None,
        typer.Option("--action", metavar="ACTION", help="publish, subscribe, manage; subscribe when left out."),
    ] = None,
    attribute: options.Attributes = None,
    sub_topics: Annotated[
        bool, typer.Option("--sub-topics", help="A right to publish is on all topics below as well.")
    ] = False,
    issuing: Issuing,
) -> None:
    """Give a right on a topic: a capability like any other.

    A right to subscribe is on the topic and on all below it, also on what is defined there later. A right to publish is
    on the topic alone, and publishing needs one on every super-topic besides, since subscribers of those receive the
    event. Otherwise as `maia grant`.
    """
    from maia.home import words

    right = words.parse_topic_right(issuing.folder, topic, actions=action, attributes=attribute, sub_topics=sub_topics)
    issuing.issue(right)
