"""`maia type fetch`: a definition from a registry that nobody has to trust."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.show.output import answer
from maia.cli.type import view
from maia.cli.type.making import OnNetwork
from maia.errors import UsageError
from maia.events import TypeName, check_owner, parse_version
from maia.home import DirectoryRegistry, fetch_into, words

EXAMPLE = "maia type fetch pito/uk.gov.pito.Numberplate@8516 --from /mnt/registry"


@unpacked
def fetch(
    type_: Annotated[str, typer.Argument(metavar="OWNER/NAME@VERSION", help="The full name: the owner is a key here.")],
    *,
    source: Annotated[Path, typer.Option("--from", metavar="DIR", help="A registry: the folder `types` of any home.")],
    network: OnNetwork = None,
    place: CommandPlace,
) -> None:
    """Fetch a version from a registry that nobody has to trust, verify it, and keep it with what it refers to."""
    folder = place.folder
    owner, name, version = words.split_type(type_, folder)
    if version is None:
        raise UsageError(f"`{type_}` names no version; add @VERSION", code="TYPE_AMBIGUOUS")
    found = fetch_into(
        folder, DirectoryRegistry(source), TypeName(check_owner(owner), name, parse_version(version)), at=place.instant,
        network=words.split_network(network, folder),
    )  # fmt: skip
    kept = view.show_name(found.definition.name, folder)
    answer(view.verified_to_json(found), f"fetched and verified: {kept}", json=place.json)
