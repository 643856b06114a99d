"""The type of what is released: a type of its own, with an owner, so that rights, keys and the audit hold for it.

Rule kept here: what leaves goes to a type that was defined here for it, or that the owner of what is read defined. A
type of that name and those attributes is easily made by anybody else, who would then say who may read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from maia.domain.grants import draft_grant, sign_grant
from maia.domain.types import show_type
from maia.errors import NotFoundError, UsageError
from maia.events import Attribute, EventType, SequenceUids, TypeName, ValueType, Version, parse_version
from maia.home import Home, ReleaseLedger, sign_definition, words
from maia.policy import release
from maia.principals import PublicKey, Signer


def released_name(name: str, tree: release.ReleaseTree) -> str:
    """Name what is released: ``uk.nhs.path_report.study.bladder-7``, and ``….counts`` for counts.

    Raises:
        UsageError: The destination's name cannot stand in a type's: ``RELEASE_NAME``.
    """
    to = tree.to.name
    if "." in to or "*" in to or "/" in to or "@" in to or not to.isprintable():
        raise UsageError(
            f"`{to}` cannot stand in the name of a type; call the destination otherwise", code="RELEASE_NAME"
        )
    return f"{name}.{tree.to.kind.value}.{to}{'.counts' if tree.counts else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinedRelease:
    """A type that was made ready for releases.

    Attributes:
        type: Its whole name, as it is called here.
        made: Whether it is new.
        certificates: How many rights to publish it were given.
    """

    type: str
    made: bool
    certificates: int


def find_released(home: Home, source: TypeName, tree: release.ReleaseTree) -> TypeName | None:
    """Find the version of a released type that has what a tree releases; nothing when there is none.

    SECURITY: one that was defined here, else one of the owner of what is read; nobody else's.

    Raises:
        UsageError: Several owners have one: ``TYPE_AMBIGUOUS``.
    """
    name, defined = released_name(source.name, tree), ReleaseLedger(home.path).defined()
    found = _versions(home, name)
    fitting = _fitting(home, [item for item in found if item.type_id.hex() in defined], tree)
    fitting = fitting or _fitting(home, [item for item in found if item.owner_id == source.owner_id], tree)
    if len({item.owner_id for item in fitting}) > 1:
        listed = ", ".join(f"`{show_type(home, item)}`" for item in fitting)
        raise UsageError(f"`{name}` may be any of: {listed}", code="TYPE_AMBIGUOUS")
    return fitting[-1] if fitting else None


def define_released(
    home: Home, signer: Signer, source: EventType, tree: release.ReleaseTree, *, publishers: Sequence[str], at: datetime
) -> DefinedRelease:
    """Define the type of a release, unless it is there, and let its publishers and the broker publish it.

    An attribute keeps its uid over versions, as long as its type stays. What goes direct is released to what goes
    direct.

    Raises:
        MaiaError: The name is none, or a publisher is unknown.
    """
    owner, name = signer.public_key, released_name(source.name.name, tree)
    known = next(reversed(_fitting(home, _versions(home, name, owner), tree)), None)
    chosen = known or TypeName(owner, name, _next_version(home, owner, name))
    if known is None:
        options = replace(source.options, topic=False)  # it travels as what it is made from
        made = EventType(name=chosen, attributes=_numbered(home, owner, name, tree.attributes), options=options)
        sign_definition(home.folder, made, signer, at=at, network=home.network)
    ledger = ReleaseLedger(home.path)
    with ledger.turn():
        ledger.define(chosen.type_id.hex())
    given = 0
    for publisher in dict.fromkeys((home.config.broker, *publishers)):
        given += _let_publish(home, signer, f"{_named(home, owner)}/{name}@*", publisher, at=at)
    return DefinedRelease(type=show_type(home, chosen), made=known is None, certificates=given)


def _fitting(home: Home, versions: Sequence[TypeName], tree: release.ReleaseTree) -> list[TypeName]:
    """Choose the versions that have what a tree releases."""
    return [
        item for item in versions if tuple((one.name, one.type) for one in _attributes(home, item)) == tree.attributes
    ]


def _versions(home: Home, name: str, owner: PublicKey | None = None) -> list[TypeName]:
    return [item for item in home.types.names() if item.name == name and owner in (None, item.owner)]


def _attributes(home: Home, name: TypeName) -> tuple[Attribute, ...]:
    """Give the attributes of a version; none when it does not verify, so that what was planted stops nobody."""
    with suppress(NotFoundError):
        return home.read_type(name).attributes
    return ()


def _numbered(
    home: Home, owner: PublicKey, name: str, wanted: Sequence[tuple[str, ValueType]]
) -> tuple[Attribute, ...]:
    """Give attributes the uids that they had, and fresh ones otherwise."""
    before: dict[tuple[str, ValueType], Attribute] = {}
    taken = set()
    for item in _versions(home, name, owner):
        for one in _attributes(home, item):
            before.setdefault((one.name, one.type), one)
            taken.add(one.uid)
    uids, made = SequenceUids(), []
    for label, kind in wanted:
        known = before.get((label, kind))
        if known is None:
            known = Attribute(name=label, uid=uids.next_uid(taken), type=kind)
            taken.add(known.uid)
        made.append(known)
    return tuple(made)


def _next_version(home: Home, owner: PublicKey, name: str) -> Version:
    kept = [item.version.text for item in _versions(home, name, owner)]
    return parse_version(str(max((int(text) for text in kept if text.isdigit()), default=0) + 1))


def _let_publish(home: Home, signer: Signer, type_: str, publisher: str, *, at: datetime) -> int:
    """Give a key of this home the right to publish a released type, unless it has it."""
    folder = home.folder
    key, right = folder.key(publisher), words.parse_right(folder, type_=type_, actions=("publish",), attributes=None)
    if key == signer.public_key:
        return 0
    for item in home.pool():
        body = item.body
        if (
            body.issuer_id == signer.public_key.key_id
            and body.subject == key
            and getattr(body, "tag", None) == (right.tag.to_sexp())
        ):
            return 0
    draft = draft_grant(folder, signer.public_key, right, to=key, at=at)
    sign_grant(folder, draft, signer, at=at)
    return 1


def _named(home: Home, owner: PublicKey) -> str:
    return home.folder.names.get(owner.key_id, owner.fingerprint)
