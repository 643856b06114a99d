"""`maia directory add|find|list|remove`: unique names for objects and principals."""

from __future__ import annotations

from typing import Annotated

import typer

from maia.cli.read.bundles import unpacked
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.read.overlay import CredentialOut, Presenting
from maia.cli.show.output import answer
from maia.encoding import counted
from maia.errors import UsageError

app = new_app(
    "Name objects and principals, each name once.",
    "maia directory add lab.code --object repository:lab/code --as admin",
)
EntryName = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, `.`, `_` and `-`.")]


@app.command(
    epilog=examples(
        "maia directory add lab.code --object repository:lab/code --as admin",
        "maia directory add smith --principal smith --as admin",
    )
)
@unpacked
def add(
    name: EntryName,
    *,
    as_: Annotated[str, principal_option("--as", help="Who registers it: it holds the right register.")],
    named: Annotated[
        str | None, typer.Option("--object", metavar="KIND:OWNER/NAME[@VERSION]", help="What it stands for.")
    ] = None,
    principal: Annotated[str | None, principal_option("--principal", help="Or whom it stands for.")] = None,
    place: Presenting,
) -> None:
    """Register a name; one that is taken is refused.

    Whoever registers holds the right register on the directory, `directory:DOMAIN/directory`. The domain's key signs
    the entry.
    """
    from maia.domain import DirectoryEntry, add_entry
    from maia.home import words

    if (named is None) == (principal is None):
        raise UsageError("give exactly one of --object and --principal", code="USAGE")
    folder, client = place.folder, place.client(as_)
    target = folder.key(principal) if principal is not None else words.parse_object(named or "", folder)
    entry = DirectoryEntry(name=name, target=target)
    add_entry(place.opened, client, entry, place.signer, at=place.instant)
    answer(entry.to_json(folder), f"{name} is registered", json=place.json)


@app.command(epilog=examples("maia directory find lab.code", "maia directory find lab.code --as app --out repo.xml"))
@unpacked
def find(
    name: EntryName,
    *,
    as_: Annotated[
        str | None, principal_option("--as", help="Who wants a credential of the object, and proves its key.")
    ] = None,
    out: CredentialOut = None,
    place: Presenting,
) -> None:
    """Look a name up; anyone may. With --as, the security manager gives a credential of the object that is found."""
    from maia.authority import ObjectDescriptor
    from maia.domain import find_entry, give_credential

    found = find_entry(place.opened, name)
    if as_ is None:
        data = found.to_json(place.folder)
        answer(data, str(data["object"] or data["principal"]), json=place.json)
        return
    if not isinstance(found.target, ObjectDescriptor):
        raise UsageError(f"`{name}` is a principal, of which there are no credentials", code="USAGE")
    client = place.client(as_)
    given = give_credential(place.opened, client, found.target, place.signer, at=place.instant)
    place.hand(given.certificate, out)


@app.command("list", epilog=examples("maia directory list"))
@unpacked
def list_(*, place: Presenting) -> None:
    """List the names; anyone may."""
    from maia.domain import list_entries

    found = [entry.to_json(place.folder) for entry in list_entries(place.opened)]
    lines = [f"{item['name']}  {item['object'] or item['principal']}" for item in found]
    answer({"entries": found}, *lines, counted(len(found), "name"), json=place.json)


@app.command(epilog=examples("maia directory remove lab.code --as admin"))
@unpacked
def remove(
    name: EntryName,
    *,
    as_: Annotated[str, principal_option("--as", help="Who removes it: it holds the right register.")],
    place: Presenting,
) -> None:
    """Take a name out of the directory, so that it can be registered again."""
    from maia.domain import remove_entry

    remove_entry(place.opened, place.client(as_), name, at=place.instant)
    answer({"name": name, "removed": True}, f"{name} is removed", json=place.json)
