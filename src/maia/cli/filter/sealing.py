"""`maia filter seal|weigh`: filters as they travel between brokers, and what a broker makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import answer, printable, write_json, write_line
from maia.encoding import counted

if TYPE_CHECKING:
    from maia.domain import WeighedFilter

SEAL = examples("maia filter seal \"numberplate = 'AE05 XYZ'\" --type Numberplate --out wanted.filter")
WEIGH = examples("maia filter weigh wanted.filter", "maia filter weigh *.filter --json")


def seal(
    text: Annotated[str, typer.Argument(help="A filter, in quotes.", metavar="FILTER")],
    *,
    type_: Annotated[str, typer.Option("--type", metavar="TYPE", help="The type that it is on.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write it.")],
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Seal a filter as a link sends it: the type and the attributes can be read by all, what is asked of them cannot.

    The home has to hold the keys of every attribute that the filter asks about.
    """
    import maia
    from maia.domain import seal_filters

    domain = maia.open(home)
    found = seal_filters(domain, domain.find_type(type_).type_id.hex(), [text])
    if not found:
        from maia.errors import UsageError

        raise UsageError("no event can match this filter", code="FILTER_TYPE")
    out.write_bytes(found[0].to_bytes())
    shown: dict[str, object] = {
        "file": str(out), "type": found[0].type_id.hex(), "attributes": [uid.decode() for uid in found[0].attributes],
        "blocks": [{"label": block.label.decode(), "octets": len(block.octets)} for block in found[0].blocks],
    }  # fmt: skip
    answer(shown, f"{out}: asks about {counted(len(found[0].attributes), 'attribute')}", json=json)


def weigh(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Sealed filters.")],
    *,
    home: options.Home = Path(),
    json: options.Json = False,
) -> int:
    """Tell what the broker of this home reads of sealed filters, and which of them it would pass on.

    One that no holder of the keys made is dropped, and one that another covers is not passed on; without the keys all
    are passed on as they are. Exit code 4 when one is forged.
    """
    import maia
    from maia.domain import told_on, weigh_filters
    from maia.encryption import MAX_FILTER
    from maia.home import read_file

    domain = maia.open(home)
    found = weigh_filters(domain, [read_file(file, limit=MAX_FILTER) for file in files])
    told = {id(item) for item in told_on(found)}
    code = ExitCode.NOT_VERIFIED if any(item.opened.forged for item in found) else ExitCode.DONE
    rows = [
        {"file": str(file), **_shown(item), "passed_on": id(item) in told}
        for file, item in zip(files, found, strict=True)
    ]
    if json:
        write_json({"filters": rows}, code=code)
        return code
    for row in rows:
        passed = "passed on" if row["passed_on"] else "not passed on"
        said = f", {row['filter']}" if row["filter"] else ""
        write_line(printable(f"{row['file']}: {row['state']}{said}; {passed}"))
    return code


def _shown(item: WeighedFilter) -> dict[str, object]:
    from maia.filters import TypedFilter, format_filter

    read = item.opened.constraints
    return {
        "state": item.state,
        "type": item.sealed.type_id.hex(),
        "attributes": [uid.decode("ascii", "replace") for uid in item.sealed.attributes],
        "filter": format_filter(TypedFilter(constraints=read)) if read else None,
    }
