"""What a home knows of a right before it is signed: that it will serve nobody, or not yet.

The right itself is sound; `maia.authority.lint_right` says what is odd in it. Here it is compared with the home: with
the types that are kept, and with what the broker, through which its clients publish, may do.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from maia.authority import Action, RightFinding, Verifier, ask_type
from maia.domain.status.steps import publish_step
from maia.encoding import Sexp, did_you_mean
from maia.errors import MaiaError
from maia.home import Folder, Home, words
from maia.principals import Principal, PublicKey, principal_id

TYPE_NOT_HERE = "TYPE_NOT_HERE"
BROKER_LACKS_RIGHT = "BROKER_LACKS_RIGHT"


def find_useless(folder: Folder, right: words.Right, to: Principal, *, at: datetime) -> Iterator[RightFinding]:
    """Find why a right on a type will serve nobody, as far as this home can tell.

    Args:
        folder: The home.
        right: What is given.
        to: Who receives it.
        at: Now.
    """
    owner = right.owner
    match right.tag.to_sexp():
        case (b"maia-type", bytes(), bytes() as octets, *rest) if owner is not None and b"*" not in octets:
            name = octets.decode("utf-8", "replace")
        case _:
            return
    kept = folder.versions(principal_id(owner), name)
    version = rest[0] if rest and isinstance(rest[0], bytes) else None
    if isinstance(owner, PublicKey) and _is_here(folder, owner):
        # Whoever holds the owner's key defines the types; elsewhere a definition may still be on its way.
        yield from _unknown_type(folder, name, version, [item.name.version.text for item in kept])
    if kept and Action.PUBLISH.value.encode() in _words(right.tag.to_sexp()):
        yield from _idle_broker(folder, owner, name, kept[0].name.version.text, to, at)


def _unknown_type(folder: Folder, name: str, version: bytes | None, kept: list[str]) -> Iterator[RightFinding]:
    if not kept:
        near = did_you_mean(name, {item.name for item in folder.types.names()})
        yield RightFinding(TYPE_NOT_HERE, f"this home, which has the owner's key, keeps no type `{name}`{near}")
    elif version is not None and version.decode("utf-8", "replace") not in kept:
        there = ", ".join(kept)
        yield RightFinding(
            TYPE_NOT_HERE, f"there is no version {version.decode('utf-8', 'replace')} of it, but {there}"
        )


def _idle_broker(
    folder: Folder, owner: Principal, name: str, version: str, to: Principal, at: datetime
) -> Iterator[RightFinding]:
    """Say that a client of this home publishes through a broker that may not."""
    try:
        home = Home.of(folder)
        broker = home.key(home.config.broker)
        if to == broker or not isinstance(to, PublicKey) or not _is_here(folder, to):
            return
        request = ask_type(Action.PUBLISH, owner, name, version)
        held = Verifier(statements=folder.book()).clauses(request, principal=broker, evidence=folder.pool(), at=at)
    except MaiaError:
        return  # no domain's home, or one that `maia status` speaks of
    if not held:
        shown = folder.names.get(principal_id(owner))
        step = publish_step(home, folder, f"{shown}/{name}" if shown else name, code="NO_EVIDENCE")
        where = f", in {step.where}" if step.where else ""
        message = f"it serves nobody yet: the broker may not publish `{name}`; `{step.command}` lets it{where}"
        yield RightFinding(BROKER_LACKS_RIGHT, message)


def _is_here(folder: Folder, key: PublicKey) -> bool:
    name = folder.names.get(key.key_id)
    return name is not None and folder.key_path(name).is_file()


def _words(expression: Sexp) -> set[bytes]:
    """List all atoms of an expression."""
    if isinstance(expression, bytes):
        return {expression}
    return set[bytes]().union(*map(_words, expression)) if isinstance(expression, tuple) else set()
