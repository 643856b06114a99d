"""`maia translate`: a client that follows one type and publishes what it sees as another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import answer
from maia.encoding import counted

app = new_app()


@app.command(
    epilog=examples(
        "maia translate uk.gov.pito.Numberplate@8516 uk.gov.pito.Sighting --as translator",
        "maia translate pito/Plate@1 pito/Sighting@1 --as translator --pair license=numberplate --follow",
    )
)
def translate(
    source: Annotated[
        str, typer.Argument(metavar="OLD", help="The type that is followed: NAME or OWNER/NAME@VERSION.")
    ],
    target: Annotated[str, typer.Argument(metavar="NEW", help="The type that is published.")],
    *,
    client: Annotated[str, principal_option("--as", help="Who translates: a key of this home, by name.")],
    pair: Annotated[
        list[str] | None,
        typer.Option("--pair", metavar="OLD=NEW", help="Copy this attribute; those of one name unless any is named."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until interrupted.")] = False,
    publication: Annotated[
        str | None,
        typer.Option("--publication", metavar="ID", help="Names what is published; the two types otherwise."),
    ] = None,
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> int:
    """Move events from one type to another, where a new version would have cut clients off from each other.

    The translator is a client: it sees what it may subscribe to and sets what it may publish. Run again it goes on
    where it ended, and moves each event once. Exit code 3 when it may not.
    """
    from maia.authority import Action
    from maia.cli.read.clients import denial, named_type, open_client
    from maia.cli.show.progress import interruptible, watching
    from maia.domain import TypeOrTopic, make_translator, start_translator
    from maia.home import words
    from maia.spark import spark_errors, start_spark

    domain, mover = open_client(home, client, passphrase_file)
    old, new = (named_type(domain, TypeOrTopic(type=text)) for text in (source, target))
    name = publication or f"translate {old} {new}"
    translator = make_translator(domain, old, new, [words.parse_pair(text) for text in pair or ()])
    with denial(domain, client=client, action=Action.SUBSCRIBE, type_text=old):
        domain.deliver_plan(old, client=mover.proven, commits=())
    with denial(domain, client=client, action=Action.PUBLISH, type_text=new):
        domain.publish_plan(new, client=mover.proven, publication=name)
    with watching("starting Spark") as watch, interruptible() as pressed, spark_errors():
        start_spark(octets=None)
        watch.say(f"translating {old} to {new}")
        query = start_translator(mover, translator, old, new, publication=name)
        try:
            if follow:
                while not pressed.is_set() and not query.awaitTermination(1):
                    pass
            else:
                query.processAllAvailable()
        finally:
            query.stop()
        moved = sum(item.numInputRows for item in query.recentProgress)
    done = {"source": old, "target": new, "publication": name, "events": moved}
    answer(done, f"translated {counted(moved, 'event')} of {old} to {new}", json=json)
    return ExitCode.INTERRUPTED if pressed.is_set() else ExitCode.DONE
