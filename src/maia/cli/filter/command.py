"""`maia filter`: check, format, compare and explain filters without any event type at hand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from maia.cli.filter.sealing import SEAL, WEIGH, seal, weigh
from maia.cli.read.bundles import unpacked
from maia.cli.read.options import Json, examples, new_app
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import answer
from maia.encoding import counted, did_you_mean, format_advanced
from maia.errors import UsageError
from maia.filters import (
    Relation,
    ScreenMode,
    TypedFilter,
    check_event,
    compile_filter,
    format_filter,
    holds,
    parse_filter,
    read_event,
    satisfiable,
    screen,
    simplify,
    to_tag,
)
from maia.filters import covers as decide

app = new_app("Check, format, compare and explain filters.")
app.command(epilog=SEAL)(seal)
app.command(epilog=WEIGH)(weigh)
_MAX_TYPES_FILE = 1 << 20
_Text: TypeAlias = Annotated[str, typer.Argument(help="A filter, in quotes.", metavar="FILTER")]


@dataclass(frozen=True, kw_only=True)
class _Typed:
    """The types of the attributes, and for whom the answer is written."""

    types: Annotated[
        list[str] | None,
        typer.Option("--type", "-t", help="An attribute and its type; once for each attribute.", metavar="NAME=TYPE"),
    ] = None
    types_file: Annotated[
        Path | None,
        typer.Option("--types", help='A JSON object of attribute types, as in {"price": "integer"}.', metavar="FILE"),
    ] = None
    as_json: Json = False

    def known(self) -> dict[str, str]:
        """Read the types; none when none are given."""
        found = {} if self.types_file is None else _read_types(self.types_file)
        for item in self.types or ():
            name, equals, kind = item.rpartition("=")
            if not equals or not name:
                raise UsageError(f"`{item}` is not of the form NAME=TYPE", code="FILTER_TYPE_OPTION")
            found[name] = kind
        return found

    def required(self) -> dict[str, str]:
        """Read the types, which have to be given."""
        if not self.types and self.types_file is None:
            raise UsageError(
                "give the attribute types with --type NAME=TYPE or --types FILE", code="FILTER_TYPES_MISSING"
            )
        return self.known()


@app.command(epilog=examples('maia filter check "price < 100 and message any" -t price=integer -t message=string'))
@unpacked
def check(text: _Text, *, typed: _Typed) -> None:
    """Say whether a filter is well formed.

    With types, also whether it fits them and whether any event can match it.
    """
    filter_, known = parse_filter(text), typed.known()
    result: dict[str, object] = {"constraints": len(filter_.constraints), "attributes": sorted(filter_.attributes)}
    line = f"well formed: {counted(len(filter_.constraints), 'constraint')}"
    if typed.types or typed.types_file is not None:
        possible = satisfiable(compile_filter(text, known))
        result["satisfiable"] = possible
        line += ", fits the types" + ("" if possible else ", but no event can match it")
    answer(result, line, json=typed.as_json)


@app.command("format", epilog=examples('maia filter format "price<100   AND color  Any"'))
def format_command(text: _Text, as_json: Json = False) -> None:
    """Write a filter in its one canonical spelling."""
    spelled = format_filter(parse_filter(text))
    answer({"filter": spelled}, spelled, json=as_json)


@app.command(epilog=examples('maia filter covers "price > 10" "price > 20" -t price=integer'))
@unpacked
def covers(
    wide: Annotated[str, typer.Argument(help="The filter that should cover.", metavar="WIDE")],
    narrow: Annotated[str, typer.Argument(help="The filter that should be covered.", metavar="NARROW")],
    *,
    relation: Annotated[
        str, typer.Option(help="subscription, strict-subscription, advertisement or strict-advertisement.")
    ] = "subscription",
    typed: _Typed,
) -> ExitCode:
    """Say whether one filter covers another.

    WIDE covers NARROW when every event that NARROW covers is covered by WIDE. The exit code is 1 when it does not.
    """
    known, relations = typed.required(), [choice.value for choice in Relation]
    if relation not in relations:
        raise UsageError(
            f"there is no relation `{relation}`{did_you_mean(relation, relations)}", code="FILTER_RELATION"
        )
    covered = decide(compile_filter(wide, known), compile_filter(narrow, known), Relation(relation))
    code, line = (ExitCode.DONE, "covers") if covered else (ExitCode.FAILED, "does not cover")
    answer({"covers": covered, "relation": relation}, line, json=typed.as_json, code=code)
    return code


@app.command(epilog=examples('maia filter explain "x > 3 and x < 5" -t x=integer'))
@unpacked
def explain(
    text: _Text,
    *,
    event: Annotated[
        str | None, typer.Option(help="A JSON object to test, constraint by constraint.", metavar="JSON")
    ] = None,
    typed: _Typed,
) -> None:
    """Show what a filter means.

    That is its simplest equal, whether it can match, the tags a capability would carry for it and, with an event,
    which constraints hold.
    """
    known = typed.required()
    filter_ = compile_filter(text, known)
    possible, simple = satisfiable(filter_), simplify(filter_)
    tags = {name: format_advanced(to_tag(found)) for name, found in filter_.by_attribute().items()}
    result: dict[str, object] = {
        "filter": format_filter(filter_), "satisfiable": possible, "simplified": format_filter(simple), "tags": tags
    }  # fmt: skip
    lines = [f"filter      {format_filter(filter_) or '(no constraints)'}"]
    if simple != filter_:
        lines.append(f"same as     {format_filter(simple)}")
    lines.append(f"can match   {'yes' if possible else 'no: the constraints contradict one another'}")
    lines += [f"tag         {name}: {tag}" for name, tag in tags.items()]
    if event is not None:
        tested = _tested(filter_, event, known)
        result |= {"event": tested, "matches": all(tested.values())}
        lines += [f"{'holds' if held else 'fails'}       {constraint}" for constraint, held in tested.items()]
        lines.append(f"matches     {'yes' if all(tested.values()) else 'no'}")
    answer(result, *lines, json=typed.as_json)


@app.command(
    "screen",
    epilog=examples(
        'maia filter screen "message any and price any" "price < 100" \'{"message": "sale", "price": 23}\' \\',
        "    -t message=string -t price=integer",
    ),
)
@unpacked
def screen_command(
    rights: Annotated[str, typer.Argument(help="The filter that says what a subscriber may see.", metavar="RIGHTS")],
    text: _Text,
    event: Annotated[str, typer.Argument(help="A JSON object.", metavar="EVENT")],
    *,
    nulls: Annotated[bool, typer.Option("--null", help="Keep what is hidden as null, and do not omit it.")] = False,
    typed: _Typed,
) -> ExitCode:
    """Show what of an event a subscriber with RIGHTS sees that subscribed to FILTER: formula (8).

    The largest part that the rights strictly cover, when filter and rights match the event; else nothing, and the exit
    code is 1. A filter over an attribute that the rights do not name is refused.
    """
    known = typed.required()
    values = _read(event, known)
    mode = ScreenMode.NULL if nulls else ScreenMode.OMIT
    seen = screen(compile_filter(rights, known), compile_filter(text, known), values, mode=mode)
    given = json.loads(event)
    shown = None if seen is None else {name: given[name] if seen[name] is not None else None for name in seen}
    code = ExitCode.FAILED if shown is None else ExitCode.DONE
    answer({"shown": shown}, "nothing" if shown is None else json.dumps(shown), json=typed.as_json, code=code)
    return code


def _read(event: str, types: dict[str, str]) -> dict[str, object]:
    """Read an event that fits the types."""
    try:
        values = read_event(json.loads(event), types)
    except (ValueError, RecursionError) as error:
        raise UsageError("the event is no JSON object", code="FILTER_EVENT") from error
    check_event(values, types)
    return values


def _tested(filter_: TypedFilter, event: str, types: dict[str, str]) -> dict[str, bool]:
    """Each constraint with whether it holds for the event."""
    values = _read(event, types)
    return {
        format_filter(TypedFilter(constraints=(item,))): holds(item, values.get(item.attribute))
        for item in filter_.constraints
    }


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
