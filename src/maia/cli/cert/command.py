"""`maia cert show`: certificates as trees, S-expressions or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import certificate_argument, examples, new_app
from maia.cli.show.output import draw, note, write_json, write_line

app = new_app("Show certificates.", "maia cert show")


@app.command(
    epilog=examples("maia cert show", "maia cert show 3fa1c9 --sexp", "maia cert show smith.cert --json"),
)
def show(
    certificates: Annotated[
        list[str] | None, certificate_argument("Files, or beginnings of ids; all of this home when left out.")
    ] = None,
    home: options.Home = Path(),
    sexp: Annotated[bool, typer.Option("--sexp", help="Write the advanced S-expression, signature included.")] = False,
    at: options.At = None,
    json: options.Json = False,
) -> None:
    """Show what certificates say, whether their signatures verify, and how long they outlive a revocation."""
    from maia.cli.read.instants import decision_instant
    from maia.cli.show.certificates import certificate_to_json, certificate_tree, is_genuine, state_text
    from maia.encoding import format_advanced, parse_canonical
    from maia.home import Folder

    place, instant = Folder(home), decision_instant(at)
    found = [place.certificate(text) for text in certificates or ()] or list(place.certificates.pool())
    if json:
        write_json({
            "certificates": [
                {
                    **certificate_to_json(item, place),
                    "genuine": is_genuine(item),
                    "state": state_text(item.body.period, instant),
                }
                for item in found
            ]
        })  # fmt: skip
    elif sexp:
        for item in found:
            write_line(format_advanced(parse_canonical(item.raw)))
    elif not found:
        note("no certificates here; `maia grant` and `maia name add` make some")
    else:
        book = place.book()
        for item in found:
            draw(certificate_tree(item, place, at=instant, book=book))
