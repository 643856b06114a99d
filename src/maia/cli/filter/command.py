"""`maia filter`: check, format, compare and explain filters without any event type at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from maia.cli.read.options import Json, examples, new_app
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import printable, write_json, write_line
from maia.errors import UsageError

if TYPE_CHECKING:
    from maia.filters import TypedFilter

app = new_app("Check, format, compare and explain filters.")

_MAX_TYPES_FILE = 1 << 20

Text: TypeAlias = Annotated[str, typer.Argument(help="A filter, in quotes.", metavar="FILTER")]
Types: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--type", "-t", help="An attribute and its type; once for each attribute.", metavar="NAME=TYPE"),
]
TypesFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--types", help='A JSON object of attribute types, as in {"price": "integer"}.', metavar="FILE"),
]


@app.command(epilog=examples('maia filter check "price < 100 and message any" -t price=integer -t message=string'))
def check(text: Text, types: Types = None, types_file: TypesFile = None, as_json: Json = False) -> ExitCode:
    """Say whether a filter is well formed.

    With types, also whether it fits them and whether any event can match it.
    """
    from maia.filters import parse_filter, satisfiable

    filter_ = parse_filter(text)
    known = _types(types, types_file)
    count = len(filter_.constraints)
    result: dict[str, object] = {"constraints": count, "attributes": sorted(filter_.attributes)}
    line = f"well formed: {count} constraint{'' if count == 1 else 's'}"
    if known is not None:
        possible = satisfiable(_compile(text, known))
        result["satisfiable"] = possible
        line += ", fits the types" + ("" if possible else ", but no event can match it")
    _answer(result, line, as_json=as_json)
    return ExitCode.DONE


@app.command("format", epilog=examples('maia filter format "price<100   AND color  Any"'))
def format_command(text: Text, as_json: Json = False) -> ExitCode:
    """Write a filter in its one canonical spelling."""
    from maia.filters import format_filter, parse_filter

    spelled = format_filter(parse_filter(text))
    _answer({"filter": spelled}, spelled, as_json=as_json)
    return ExitCode.DONE


@app.command(epilog=examples('maia filter covers "price > 10" "price > 20" -t price=integer'))
def covers(
    wide: Annotated[str, typer.Argument(help="The filter that should cover.", metavar="WIDE")],
    narrow: Annotated[str, typer.Argument(help="The filter that should be covered.", metavar="NARROW")],
    types: Types = None,
    types_file: TypesFile = None,
    relation: Annotated[
        str,
        typer.Option(help="subscription, strict-subscription, advertisement or strict-advertisement."),
    ] = "subscription",
    as_json: Json = False,
) -> ExitCode:
    """Say whether one filter covers another.

    WIDE covers NARROW when every event that NARROW covers is covered by WIDE. The exit code is 1 when it does not.
    """
    from maia.filters import Relation
    from maia.filters import covers as decide

    known = _required(types, types_file)
    if relation not in {choice.value for choice in Relation}:
        raise UsageError(f"there is no relation `{relation}`", code="FILTER_RELATION")
    answer = decide(_compile(wide, known), _compile(narrow, known), Relation(relation))
    code = ExitCode.DONE if answer else ExitCode.FAILED
    _answer(
        {"covers": answer, "relation": relation}, "covers" if answer else "does not cover", as_json=as_json, code=code
    )
    return code


@app.command(epilog=examples('maia filter explain "x > 3 and x < 5" -t x=integer'))
def explain(
    text: Text,
    types: Types = None,
    types_file: TypesFile = None,
    event: Annotated[
        str | None, typer.Option(help="A JSON object to test, constraint by constraint.", metavar="JSON")
    ] = None,
    as_json: Json = False,
) -> ExitCode:
    """Show what a filter means.

    That is its simplest equal, whether it can match, the tags a capability would carry for it and, with an event,
    which constraints hold.
    """
    from maia.encoding import format_advanced
    from maia.filters import format_filter, satisfiable, simplify, to_tag

    known = _required(types, types_file)
    filter_ = _compile(text, known)
    possible = satisfiable(filter_)
    simple = simplify(filter_)
    tags = {name: format_advanced(to_tag(found)) for name, found in filter_.by_attribute().items()}
    result: dict[str, object] = {
        "filter": format_filter(filter_),
        "satisfiable": possible,
        "simplified": format_filter(simple),
        "tags": tags,
    }
    lines = [f"filter      {format_filter(filter_) or '(no constraints)'}"]
    if simple != filter_:
        lines.append(f"same as     {format_filter(simple)}")
    lines.append(f"can match   {'yes' if possible else 'no: the constraints contradict one another'}")
    lines += [f"tag         {name}: {tag}" for name, tag in tags.items()]
    if event is not None:
        tested = _tested(filter_, event, known)
        result["event"] = tested
        result["matches"] = all(tested.values())
        lines += [f"{'holds' if held else 'fails'}       {constraint}" for constraint, held in tested.items()]
        lines.append(f"matches     {'yes' if all(tested.values()) else 'no'}")
    _answer(result, "\n".join(printable(line) for line in lines), as_json=as_json, shown=True)
    return ExitCode.DONE


def _answer(
    result: dict[str, object], line: str, *, as_json: bool, code: ExitCode = ExitCode.DONE, shown: bool = False
) -> None:
    if as_json:
        write_json(result, code=code)
    else:
        write_line(line if shown else printable(line))


def _compile(text: str, types: dict[str, str]) -> TypedFilter:
    from maia.filters import compile_filter

    return compile_filter(text, types)


def _tested(filter_: TypedFilter, event: str, types: dict[str, str]) -> dict[str, bool]:
    """Each constraint with whether it holds for the event."""
    from maia.cli.read.events import read_event
    from maia.filters import TypedFilter as Typed
    from maia.filters import check_event, format_filter, holds

    try:
        values = read_event(json.loads(event), types)
    except (ValueError, RecursionError) as error:
        raise UsageError("the event is no JSON object", code="FILTER_EVENT") from error
    check_event(values, types)
    return {
        format_filter(Typed(constraints=(constraint,))): holds(constraint, values.get(constraint.attribute))
        for constraint in filter_.constraints
    }


def _required(types: list[str] | None, file: Path | None) -> dict[str, str]:
    found = _types(types, file)
    if found is None:
        raise UsageError("give the attribute types with --type NAME=TYPE or --types FILE", code="FILTER_TYPES_MISSING")
    return found


def _types(types: list[str] | None, file: Path | None) -> dict[str, str] | None:
    """The attribute types from the options; None when there are none."""
    if not types and file is None:
        return None
    known = {} if file is None else _read_types(file)
    for item in types or ():
        name, equals, kind = item.rpartition("=")
        if not equals or not name:
            raise UsageError(f"`{item}` is not of the form NAME=TYPE", code="FILTER_TYPE_OPTION")
        known[name] = kind
    return known


def _read_types(file: Path) -> dict[str, str]:
    with file.open("rb") as source:
        raw = source.read(_MAX_TYPES_FILE + 1)
    try:
        found = json.loads(raw) if len(raw) <= _MAX_TYPES_FILE else None
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(kind, str) for kind in found.values()):
        raise UsageError(f"`{file}` is no JSON object of attribute types", code="FILTER_TYPES_FILE")
    return dict(found)
