"""`maia type define|add|fetch|show|verify|evolve|diff|lint|from-schema`: event types and their versions.

Types live in the home's folder `types`, which is a registry like any other: what is read there is verified before it
counts. A type is written OWNER/NAME@VERSION, or as the file of a signed definition.
"""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated

import typer

from maia.authority import Verifier
from maia.cli.read import options
from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.options import examples, new_app
from maia.cli.show.output import answer, note, printable, write_json, write_line
from maia.cli.type import view
from maia.cli.type.fetch import EXAMPLE as FETCH_EXAMPLE
from maia.cli.type.fetch import fetch
from maia.cli.type.lint import EXAMPLES as LINT_EXAMPLES
from maia.cli.type.lint import New, Old, lint
from maia.cli.type.making import Making, OnNetwork, Travel
from maia.errors import UsageError
from maia.events import (
    EVENT_TYPE_LIMITS,
    FIRST,
    AttributeType,
    EventType,
    Operation,
    Remove,
    Rename,
    TypeName,
    ValueType,
    counted,
    drawn,
    first_attributes,
    hashed,
    misleading_names,
    parse_attribute_type,
    parse_compatible_event_type,
    parse_event_type,
    parse_version,
)
from maia.events import diff as compare
from maia.events import evolve as make_version
from maia.home import (
    Folder,
    extended_definitions,
    find_definition,
    read_file,
    verify_with_registry,
    whole_type,
    words,
)
from maia.principals import KeyHash, KeyId

app = new_app("Define, evolve and check event types.")

_TypeArgument = Annotated[str, typer.Argument(metavar="TYPE", help="OWNER/NAME@VERSION, or a file.")]
_Uids = Annotated[
    str,
    typer.Option(
        "--uids", metavar="KIND",
        help="Where uids come from: sequence, folded, uuid; folded:N and remainder:N make N octets of a UUID.",
    ),
]  # fmt: skip


@app.command(
    epilog=examples(
        "maia type define pito/uk.gov.pito.Numberplate@8516 --attribute numberplate:string:3265 \\",
        "    --attribute timestamp:timestamp:9058 --attribute location:string:3467",
        "maia type define met/uk.police.Pursuit --extends pito/uk.gov.pito.Numberplate@8516 --attribute unit:string",
    )
)
@unpacked
def define(
    name: Annotated[str, typer.Argument(metavar="OWNER/NAME[@VERSION]", help="The type; version 0 unless named.")],
    *,
    attribute: Annotated[
        list[str] | None,
        typer.Option("--attribute", metavar="NAME:TYPE[:UID]", help="An attribute; uids count from 0 unless given."),
    ] = None,
    extends: Annotated[
        str | None,
        typer.Option(
            "--extends", metavar="OWNER/NAME@VERSION", help="Inherit from this type; needs its `extend` right."
        ),
    ] = None,
    travel: Travel,
    uids: _Uids = "sequence",
    making: Making,
) -> None:
    """Define an event type, sign it, and keep it in the home.

    Attribute types: integer, float, decimal, string, boolean, date, timestamp, binary; decimal(P,S), array<TYPE> and
    struct<NAME:TYPE,…>, of which the last two are opened whole and never filtered. A type that extends another one
    names its own attributes only, travels as the other does, and its events are events of the other as well.
    """
    place = making.folder
    parent = None if extends is None else find_definition(place, extends).definition
    taken = () if parent is None else (parent, *extended_definitions(place, parent))
    definition = EventType(
        name=words.new_name(name, place),
        attributes=first_attributes(
            [words.parse_add(text) for text in attribute or ()],
            words.uid_policy(uids),
            known=[item for version in taken for item in version.attributes],
        ),
        options=travel.options(None if parent is None else parent.options),
        extends=None if parent is None else parent.name,
    )
    making.keep(definition)


@app.command(epilog=examples("maia type show", "maia type show pito/uk.gov.pito.Numberplate@8516 --spark"))
def show(
    type_: Annotated[
        str | None, typer.Argument(metavar="TYPE", help="OWNER/NAME@VERSION, or a file; all when left out.")
    ] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Write the schema as Spark reads it.")] = False,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Show a definition as it stands, unverified, with notes on names that could mislead."""
    place = Folder(home)
    known = place.types.names()
    if type_ is None:
        if json:
            write_json({"types": [view.name_to_json(name) for name in known]})
        elif known:
            view.draw_names(known, place)
        else:
            note("no types here; `maia type define` makes one")
        return
    found = find_definition(place, type_)
    notes = misleading_names(found.definition, known)
    if spark:
        from maia.events import to_spark_ddl, to_spark_json

        whole = whole_type(place, found.definition)
        ddl, schema = to_spark_ddl(whole), json_text.loads(to_spark_json(whole))
        write_json({"ddl": ddl, "schema": schema}) if json else write_line(ddl)
    elif json:
        write_json({**view.type_to_json(found), **view.inherited_to_json(found, place), "notes": list(notes)})
    else:
        view.draw_type(found, place)
    for text in notes:
        note(f"warning: {text}")


@app.command(
    epilog=examples("maia type add numberplate.type", "maia type add numberplate.type --network 'pito/UK Police'")
)
@unpacked
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A signed definition, as its owner sent it.")],
    *,
    network: OnNetwork = None,
    place: CommandPlace,
) -> None:
    """Keep a definition that came from its owner, after verifying it.

    There is one definition for each version: the first that is accepted says what the version means here, and another
    one is refused from then on, whoever signed it.
    """
    folder = place.folder
    found = parse_event_type(read_file(file, limit=EVENT_TYPE_LIMITS.max_bytes))
    verify_with_registry(
        folder.types, found, verifier=Verifier(statements=folder.book()), at=place.instant,
        network=words.split_network(network, folder),
    )  # fmt: skip
    folder.types.put(found.raw, at=place.instant)
    answer(view.type_to_json(found), f"kept {view.show_name(found.definition.name, folder)}", json=place.json)


app.command("fetch", epilog=examples(FETCH_EXAMPLE))(fetch)


@app.command(epilog=examples("maia type verify numberplate.type --network 'pito/UK Police Network'"))
@unpacked
def verify(
    type_: _TypeArgument,
    *,
    network: OnNetwork = None,
    compatible: Annotated[
        bool, typer.Option("--compatible", help="Read a file whose signature leaves the credentials out.")
    ] = False,
    place: CommandPlace,
) -> None:
    """Check that a definition speaks for its owner now: signature, credentials, previous version, parents.

    Definitions in the scope of the healthcare chapter sign names and attributes alone; they are accepted only by name.
    """
    folder = place.folder
    on = words.split_network(network, folder)
    found = (
        parse_compatible_event_type(read_file(Path(type_), limit=EVENT_TYPE_LIMITS.max_bytes))
        if compatible
        else find_definition(folder, type_)
    )
    verified = verify_with_registry(
        folder.types, found, verifier=Verifier(statements=folder.book()), at=place.instant, network=on,
        accept_compatible=compatible,
    )  # fmt: skip
    ends = "" if verified.expires is None else f", until {verified.expires.isoformat()}"
    signed = f"{view.show_name(verified.definition.name, folder)}, signed by {folder.show(verified.signer.key_id)}"
    answer(view.verified_to_json(verified), f"verified: {signed}{ends}", json=place.json)
    for text in misleading_names(found.definition, folder.types.names()):
        note(f"warning: {text}")


@app.command(
    epilog=examples(
        "maia type evolve pito/uk.gov.pito.Numberplate@4799 --rename license-plate=numberplate --as tm",
        "maia type evolve pito/uk.gov.pito.Numberplate@0 --add speed:integer --number counter --uids sequence",
    )
)
@unpacked
def evolve(
    type_: _TypeArgument,
    *,
    remove: Annotated[list[str] | None, typer.Option("--remove", metavar="NAME", help="Remove an attribute.")] = None,
    rename: Annotated[
        list[str] | None, typer.Option("--rename", metavar="OLD=NEW", help="Rename an attribute; it keeps its uid.")
    ] = None,
    retype: Annotated[
        list[str] | None,
        typer.Option("--retype", metavar="NAME:TYPE[:UID]", help="Change a type; the attribute gets a new uid."),
    ] = None,
    add: Annotated[list[str] | None, typer.Option("--add", metavar="NAME:TYPE[:UID]", help="Add an attribute.")] = None,
    number: Annotated[
        str, typer.Option("--number", metavar="VERSION", help="The new version: uuid, counter, hash, or itself.")
    ] = "uuid",
    uids: _Uids = "folded",
    embed: Annotated[bool, typer.Option("--embed", help="Put the old version into the new one.")] = False,
    extends: Annotated[
        str | None,
        typer.Option("--extends", metavar="OWNER/NAME@VERSION", help="Inherit from this version from now on."),
    ] = None,
    making: Making,
) -> None:
    """Make a new version; the old one stays in use.

    Attributes are removed, renamed, retyped and added, in this order. A manager who holds parts of `manage` may make
    the changes of those parts.
    """
    place = making.folder
    old = find_definition(place, type_)
    steps: list[Operation] = [
        *(Remove(text) for text in remove or ()),
        *(Rename(*words.parse_pair(text)) for text in rename or ()),
        *(words.parse_retype(text) for text in retype or ()),
        *(words.parse_add(text) for text in add or ()),
    ]
    parent = None if extends is None else find_definition(place, extends).definition
    if not steps and parent is None:
        raise UsageError("say what changes: --add, --remove, --rename, --retype, --extends", code="NOTHING_CHANGES")
    policies = {"uuid": drawn, "hash": hashed, "counter": counted(old.definition)}
    name = old.definition.name
    new = make_version(
        old,
        steps,
        version=policies[number] if number in policies else parse_version(number),
        uids=words.uid_policy(uids),
        known=[
            *(item.definition for item in place.types.versions(name.owner, name.name)),
            *extended_definitions(place, old.definition),
            *(() if parent is None else (parent, *extended_definitions(place, parent))),
        ],
        embed=embed,
        extends=None if parent is None else parent.name,
    )
    making.keep(new, old=old)


@app.command(epilog=examples("maia type diff pito/uk.gov.pito.Numberplate@4799 pito/uk.gov.pito.Numberplate@8516"))
def diff(
    old: Old,
    new: New,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Show what turns one version into another, by uid, and which part of `manage` each change needs."""
    place = Folder(home)
    found = compare(find_definition(place, old).definition, find_definition(place, new).definition)
    if json:
        changes = [view.change_to_json(change) for change in found.changes]
        write_json({"changes": changes, "options": found.options, "extends": found.extends})
        return
    for change in found.changes:
        write_line(f"{printable(str(change))}: {change.action}")
    if found.options:
        write_line("change the options: manage")
    if found.extends:
        write_line("change the inheritance: manage")
    if not (found.changes or found.options or found.extends):
        note("nothing changes")


app.command("lint", epilog=examples(*LINT_EXAMPLES))(lint)


@app.command(
    "from-schema",
    epilog=examples(
        "maia type from-schema sightings.parquet",
        "maia type from-schema sample.csv --assume-utc",
        "maia type from-schema sightings.parquet pito/uk.gov.pito.Numberplate",
    ),
)
@unpacked
def from_schema(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Parquet, Arrow, CSV or JSON lines, or a Spark schema as JSON.")
    ],
    *,
    name: Annotated[
        str | None,
        typer.Argument(metavar="OWNER/NAME[@VERSION]", help="Define this type; only show it when left out."),
    ] = None,
    assume_utc: Annotated[bool, typer.Option("--assume-utc", help="Read times without a zone as UTC.")] = False,
    without: Annotated[
        list[str] | None, typer.Option("--without", metavar="COLUMN", help="Leave a column out.")
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option("--attribute", metavar="NAME:TYPE", help="The type of a column, whatever the file says."),
    ] = None,
    travel: Travel,
    uids: _Uids = "sequence",
    making: Making,
) -> None:
    """Derive a type from the schema of a file, and define it when a name is given.

    Of a schema nothing is lost. CSV and JSON lines have none: their first 10,000 rows are looked at, and fractions are
    taken as float, which rounds; a note names such columns. All columns that do not fit are named, each with what to
    do about it; --without leaves a column out, and --attribute says its type.
    """
    from maia.home import is_sample, read_schema

    place = making.folder
    # Without a name there is nothing to sign; the attributes are shown under an owner that nobody is.
    shown = TypeName(KeyHash(KeyId(bytes(32))), "x", FIRST)
    definition = read_schema(
        file,
        words.new_name(name, place) if name is not None else shown,
        options=travel.options(),
        uids=words.uid_policy(uids),
        assume_utc=assume_utc,
        chosen={**dict(map(_column_type, attribute or ())), **dict.fromkeys(without or ())},
    )
    rounded = [item.name for item in definition.attributes if item.type is AttributeType.FLOAT and is_sample(file)]
    for column in rounded:
        note(
            f"`{column}` is taken as float, which rounds: if it holds amounts, "
            f"`--attribute '{column}:decimal(12,2)'` keeps them exact"
        )
    if name is not None:
        making.keep(definition)
        return
    lines = (f"{item.name}:{item.type.value}:{item.uid}" for item in definition.attributes)
    answer({"attributes": [view.attribute_to_json(item) for item in definition.attributes]}, *lines, json=making.json)


def _column_type(text: str) -> tuple[str, ValueType]:
    name, colon, kind = text.partition(":")
    if not colon:
        raise UsageError(f"`{text}` is no NAME:TYPE", code="ATTRIBUTE_TYPE")
    return name, parse_attribute_type(kind)
