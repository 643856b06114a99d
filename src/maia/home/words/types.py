"""Types, attributes and changes of them, as people write them."""

from __future__ import annotations

import re

from maia.encoding import did_you_mean
from maia.errors import MalformedError, UsageError
from maia.events import (
    Add,
    AttributeType,
    FoldedUids,
    Retype,
    SequenceUids,
    TypeName,
    UidPolicy,
    ValueType,
    WholeUuids,
    check_owner,
    parse_attribute_type,
    parse_uid,
    parse_version,
)
from maia.home.folder import Folder
from maia.home.words.asked import split_owner
from maia.home.words.principals import parse_principal_text
from maia.principals import Principal, PublicKey

_ATTRIBUTE = re.compile(
    r"(?:(?P<first>[0-9]+|x[0-9a-f]+)=)?(?P<name>[^:]+?)(?::(?P<type>[a-z]+(?:[<(].*[>)])?)(?::(?P<uid>[0-9a-fx-]+))?)?"
)
_UID_POLICIES: dict[str, UidPolicy] = {"sequence": SequenceUids(), "folded": FoldedUids(), "uuid": WholeUuids()}
_FOLDED = re.compile(r"(?P<how>folded|remainder):(?P<octets>[1-9]|1[0-5])", re.ASCII)


def parse_add(text: str) -> Add:
    """Read NAME:TYPE[:UID], or UID=NAME[:TYPE], which is text unless it says otherwise.

    >>> parse_add("numberplate:string:3265")
    Add(name='numberplate', type=<AttributeType.STRING: 'string'>, uid='3265')
    >>> parse_add("3=glucose:float")
    Add(name='glucose', type=<AttributeType.FLOAT: 'float'>, uid='3')
    >>> parse_add("price:decimal(10, 2)").type.value, parse_add("tags:array<string>:7").type.value
    ('decimal(10,2)', 'array<string>')
    """
    found = _ATTRIBUTE.fullmatch(text)
    if found is None or (found["type"] is None and found["first"] is None) or (found["first"] and found["uid"]):
        raise UsageError(f"`{text}` is no attribute; write NAME:TYPE or NAME:TYPE:UID", code="ATTRIBUTE_TEXT")
    uid, kind = found["first"] or found["uid"], found["type"] or AttributeType.STRING.value
    return Add(found["name"], _read_type(kind), None if uid is None else parse_uid(uid))


def _read_type(text: str) -> ValueType:
    """Read a type; spaces do not count, and ``decimal(38,18)`` is ``decimal``."""
    try:
        return parse_attribute_type(re.sub(r"\s*([,:<>()])\s*", r"\1", text).replace("decimal(38,18)", "decimal"))
    except MalformedError as error:
        near = did_you_mean(text, [*(item.value for item in AttributeType), "array<string>", "struct<name:string>"])
        why = f": {error.message}" if "<" in text or "(" in text else ""
        raise UsageError(f"`{text}` is no type of attributes{why}{near}", code="ATTRIBUTE_TYPE") from error


def parse_retype(text: str) -> Retype:
    """Read NAME:TYPE[:UID] as a change of type."""
    added = parse_add(text)
    return Retype(added.name, added.type, added.uid)


def parse_pair(text: str) -> tuple[str, str]:
    """Read OLD=NEW."""
    old, mark, new = text.partition("=")
    if not mark or not old or not new:
        raise UsageError(f"`{text}` is no change of name; write OLD=NEW", code="ATTRIBUTE_TEXT")
    return old, new


def uid_policy(word: str) -> UidPolicy:
    """Choose where uids come from; `folded:4` folds UUIDs to 4 octets, `remainder:4` cuts them.

    Raises:
        UsageError: The word is none of `sequence`, `folded`, `folded:N`, `remainder:N` and `uuid`.

    >>> uid_policy("remainder:4").octets
    4
    """
    if found := _FOLDED.fullmatch(word):
        return FoldedUids(octets=int(found["octets"]), remainder=found["how"] == "remainder")
    if word not in _UID_POLICIES:
        known = ", ".join((*_UID_POLICIES, "folded:N", "remainder:N"))
        raise UsageError(f"uids come from {known} (N octets, 1 to 15), not `{word}`", code="UID_POLICY")
    return _UID_POLICIES[word]


def split_network(text: str | None, home: Folder) -> tuple[Principal, str] | None:
    """Read the OWNER/NAME of a network, where one is given."""
    if text is None:
        return None
    owner, name = split_owner(text)
    return parse_principal_text(owner, home), name


def signer_key(text: str | None, owner: Principal, home: Folder) -> PublicKey:
    """Find who signs: the one named, else the owner.

    Raises:
        UsageError: Nobody is named and the owner is no key of its own.
    """
    if text is not None:
        return home.key(text)
    if isinstance(owner, PublicKey):
        return owner
    raise UsageError("the owner is no single key; name who signs with --as", code="SIGNER_MISSING")


def new_name(text: str, home: Folder) -> TypeName:
    """Read the full name of a version to be made; it is version 0 unless it says otherwise."""
    owner, rest = split_owner(text)
    name, mark, version = rest.rpartition("@")
    key = check_owner(parse_principal_text(owner, home))
    return TypeName(key, name if mark else rest, parse_version(version if mark else "0"))
