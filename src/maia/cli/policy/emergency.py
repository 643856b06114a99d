"""`maia policy emergency`: declare an emergency, end it, and show what was said of it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.bundles import unpacked
from maia.cli.read.instants import show_instant
from maia.cli.read.options import principal_option
from maia.cli.read.services import Served
from maia.cli.read.signers import open_signer
from maia.cli.show.output import note, printable, write_json, write_line
from maia.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from maia.home import providers

EXAMPLES = (
    "maia policy emergency",
    "maia policy emergency --as chief --reason 'flood in the east wing' --until +6h",
    "maia policy emergency --end --as chief --reason 'it is dry'",
)


@unpacked
def emergency(
    *,
    as_: Annotated[str | None, principal_option("--as", help="Who declares or ends it; its private key signs.")] = None,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why.")] = None,
    until: options.Until = None,
    end: Annotated[bool, typer.Option("--end", help="End it.")] = False,
    name: Annotated[
        str | None, typer.Option("--name", metavar="PREDICATE", help="Which, where there are several.")
    ] = None,
    served: Served,
) -> None:
    """Declare an emergency that conditions and rules ask for, or end it; without --as show what was said of it.

    `policy/providers.toml` names the predicate and whose word counts. What is said stays in its file, signed.
    """
    flag = _flag(served, name)
    if as_ is not None:
        if reason is None:
            raise UsageError(
                "`--reason` is missing: an emergency is declared and ended for one", code="EMERGENCY_REASON"
            )
        signer = open_signer(served.folder.key(as_), served.folder, served.passphrase_file)
        if end:
            flag.end(signer, reason=reason, at=served.instant)
        else:
            flag.declare(signer, reason=reason, at=served.instant, until=served.moment(until))
        _settle(served)
    elif reason is not None or end or until is not None:
        raise UsageError("`--as` is missing: an emergency is somebody's word", code="EMERGENCY_BY")
    holds, changes = bool(flag.facts(at=served.instant)), flag.history()
    if served.json:
        told = [
            {"at": show_instant(item.at), "declared": item.declared, "by": served.folder.show(item.by.key_id),
             "counts": item.by in flag.by, "reason": item.reason, "until": show_instant(item.until)}
            for item in changes
        ]  # fmt: skip
        write_json({"predicate": flag.name, "declared": holds, "changes": told})
        return
    for item in changes:
        write_line(printable(_told(item, flag, served)))
    note(f"`{flag.name}` is {'declared' if holds else 'not declared'}")


def _settle(served: Served) -> None:
    """Let end what stood on the emergency, where this home runs its domain; a service that runs does so by itself."""
    from maia.domain import has_register

    if has_register(served.folder):
        with suppress(NotFoundError):  # the key that speaks for the domain is elsewhere
            served.service.refresh(at=served.instant)


def _flag(served: Served, name: str | None) -> providers.EmergencyFlag:
    """Find the predicate that is meant."""
    from maia.home import providers

    declared = providers.read_providers(served.opened.path / "policy").environment.providers()
    flags = {item.name: item for item in declared if isinstance(item, providers.EmergencyFlag)}
    if name is None and len(flags) == 1:
        return next(iter(flags.values()))
    if name not in flags:
        known = ", ".join(f"`{item}`" for item in sorted(flags)) or "none"
        raise NotFoundError(
            f"no such emergency in `policy/providers.toml`, which has {known}; a `[[predicate]]` of kind `emergency` "
            "with `by` makes one",
            code="NO_EMERGENCY",
        )
    return flags[name]


def _told(change: providers.EmergencyChange, flag: providers.EmergencyFlag, served: Served) -> str:
    said = "declared" if change.declared else "ended"
    until = "" if change.until is None else f" until {show_instant(change.until)}"
    counts = "" if change.by in flag.by else "  (does not count: not in `by`)"
    return (
        f"{show_instant(change.at)}  {said} by {served.folder.show(change.by.key_id)}{until}: {change.reason}{counts}"
    )
