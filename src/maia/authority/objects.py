"""Objects of the overlay, and rights on them: what a credential's object descriptor names.

    (maia-type <owner> <name> <version> <rights>)      channel, source, sink, type: rights that streams ask for
    (maia-object <owner> <kind> <name> <rights>)       conversion, code, repository, directory

Rules kept here:

- a kind has rights of its own, and takes no others; the right ``transfer`` is one over the credential itself, and goes
  with every kind;
- a channel is the stream of an event type, a source handle the right to publish into it, a sink handle the one to
  subscribe: their credentials are the very rights that brokers decide by, so there is no second mechanism;
- the owner in the name is the root, as of every right;
- code is named by its digest, ``sha256:`` and 64 digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from maia.authority.request import Request
from maia.authority.rights import Action, encode_name, type_right
from maia.authority.tag_forms import Exactly, Tag, one_of, sequence
from maia.authority.tags import alternatives
from maia.encoding import Sexp
from maia.errors import TagError, UsageError
from maia.principals import KeyHash, KeyId

OBJECT = b"maia-object"
TRANSFER = Action.TRANSFER.value
"""The right to hand a credential to another owner."""
_ANY: Sexp = (b"*",)
_CODE = re.compile("sha256:[0-9a-f]{64}")
_ID_LENGTH = 32


class ObjectKind(StrEnum):
    """What a credential may be about."""

    CHANNEL = "channel"
    SOURCE = "source"
    SINK = "sink"
    TYPE = "type"
    CONVERSION = "conversion"
    CODE = "code"
    REPOSITORY = "repository"
    DIRECTORY = "directory"

    @property
    def on_type(self) -> bool:
        """Whether it is an event type that is named, and rights on types that are given."""
        return self in _ON_TYPES

    @property
    def rights(self) -> frozenset[str]:
        """The rights that are peculiar to the kind."""
        return _RIGHTS[self]


_ON_TYPES = (ObjectKind.CHANNEL, ObjectKind.SOURCE, ObjectKind.SINK, ObjectKind.TYPE)
_RIGHTS: Mapping[ObjectKind, frozenset[str]] = MappingProxyType(
    {
        ObjectKind.CHANNEL: frozenset({Action.ROUTE.value, Action.INSTALL_HANDLER.value}),
        ObjectKind.SOURCE: frozenset({Action.PUBLISH.value}),
        ObjectKind.SINK: frozenset({Action.SUBSCRIBE.value}),
        ObjectKind.TYPE: frozenset({Action.TRANSFORM_FROM.value, Action.TRANSFORM_TO.value}),
        ObjectKind.CONVERSION: frozenset({"convert"}),
        ObjectKind.CODE: frozenset({"fetch"}),
        ObjectKind.REPOSITORY: frozenset({"exchange", "put"}),
        ObjectKind.DIRECTORY: frozenset({"register"}),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectDescriptor:
    """One object: its kind, whose it is and its name; of kinds on event types the version too, ``None`` for all.

    >>> camera = ObjectDescriptor(kind=ObjectKind.CHANNEL, owner=KeyId(bytes(32)), name="met.CameraA", version="1")
    >>> read_object(camera.tag(["route", "transfer"]).to_sexp()) == (camera, frozenset({"route", "transfer"}))
    True
    """

    kind: ObjectKind
    owner: KeyId
    name: str
    version: str | None = None

    def __post_init__(self) -> None:
        """Refuse what names nothing."""
        if len(self.owner) != _ID_LENGTH:
            raise UsageError("the owner of an object is a key, named by a whole SHA-256", code="OBJECT_NAME")
        if "*" in self.name or (self.version is not None and not self.kind.on_type):
            raise UsageError(f"a {self.kind.value} has one name, and versions are those of types", code="OBJECT_NAME")
        if self.kind is ObjectKind.CODE and not _CODE.fullmatch(self.name):
            raise UsageError("code is named by its digest, `sha256:` and 64 digits", code="OBJECT_NAME")
        encode_name(self.name)

    def tag(self, rights: Iterable[str]) -> Tag:
        """Write rights on the object.

        Raises:
            UsageError: There is none, or the kind has no such right: ``OBJECT_RIGHT``.
        """
        chosen = frozenset(rights)
        known = self.kind.rights | {TRANSFER}
        if not chosen & self.kind.rights or chosen - known:
            told = ", ".join(sorted(self.kind.rights))
            raise UsageError(f"a {self.kind.value} has the rights {told}, and {TRANSFER} besides", code="OBJECT_RIGHT")
        return self._tag(chosen)

    def request(self, right: str) -> Request:
        """Ask for one right on the object, that of transfer included."""
        text = f"{right} on {self.kind.value} {self.name}"
        return Request(wanted=self._tag(frozenset((right,))), owner=KeyHash(self.owner), text=text)

    def _tag(self, rights: frozenset[str]) -> Tag:
        if self.kind.on_type:
            actions = [Action(word) for word in sorted(rights)]
            return type_right(KeyHash(self.owner), self.name, self.version or "*", actions=actions)
        start = (OBJECT, self.owner, self.kind.value.encode(), encode_name(self.name))
        return sequence([*map(Exactly, start), one_of(Exactly(word.encode()) for word in rights)])


def read_object(tag: Sexp) -> tuple[ObjectDescriptor, frozenset[str]]:
    """Read the object and the rights out of a tag; exactly what `ObjectDescriptor.tag` writes.

    Raises:
        TagError: It says more than a credential does, or something else: ``NOT_A_CREDENTIAL``.
    """
    found = [_read_one(item) for item in alternatives(tag)]
    rights = frozenset(word for _, words in found for word in words)
    try:
        (start,) = {place for place, _ in found}
        kind = start[0] or next(kind for kind in _ON_TYPES if rights & kind.rights)
        descriptor = ObjectDescriptor(kind=kind, owner=start[1], name=start[2], version=start[3])
        # SECURITY: what the descriptor leaves out of a right, demands and bounds among it, must not be lost in a view.
        same = descriptor.tag(rights).to_sexp() == tag
    except (ValueError, StopIteration) as error:
        raise _none() from error
    if not same:
        raise _none()
    return descriptor, rights


def _read_one(item: Sexp) -> tuple[tuple[ObjectKind | None, KeyId, str, str | None], tuple[str, ...]]:
    match item:
        case (b"maia-type", bytes() as owner, bytes() as name, version, rights):
            kind, exact = None, None if version == _ANY else _text(version)
        case (b"maia-object", bytes() as owner, bytes() as word, bytes() as name, rights):
            if _text(word) not in tuple(ObjectKind):
                raise _none()
            kind, exact = ObjectKind(_text(word)), None
        case _:
            raise _none()
    return (kind, KeyId(owner), _text(name), exact), tuple(map(_text, alternatives(rights)))


def _text(octets: Sexp) -> str:
    if not isinstance(octets, bytes):
        raise _none()
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _none() from error


def _none() -> TagError:
    return TagError("this right is none of a credential: one object, and rights of its kind", code="NOT_A_CREDENTIAL")
