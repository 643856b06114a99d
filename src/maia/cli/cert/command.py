"""`maia cert show`: certificates as trees, S-expressions or JSON."""

from __future__ import annotations

from typing import Annotated

import typer

from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.options import certificate_argument, examples, new_app
from maia.cli.show.certificates import certificate_to_json, certificate_tree, is_genuine, state_text
from maia.cli.show.output import draw, note, write_json, write_line
from maia.encoding import format_advanced, parse_canonical

app = new_app("Show certificates.", "maia cert show")


@app.command(
    epilog=examples("maia cert show", "maia cert show 3fa1c9 --sexp", "maia cert show smith.cert --json"),
)
@unpacked
def show(
    certificates: Annotated[
        list[str] | None, certificate_argument("Files, or beginnings of ids; all of this home when left out.")
    ] = None,
    *,
    sexp: Annotated[bool, typer.Option("--sexp", help="Write the advanced S-expression, signature included.")] = False,
    place: CommandPlace,
) -> None:
    """Show what certificates say, whether their signatures verify, and how long they outlive a revocation."""
    folder, instant = place.folder, place.instant
    found = [folder.certificate(text) for text in certificates or ()] or list(folder.certificates.pool())
    if place.json:
        write_json({
            "certificates": [
                {
                    **certificate_to_json(item, folder),
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
        book = folder.book()
        for item in found:
            draw(certificate_tree(item, folder, at=instant, book=book))
