"""Objects of the overlay as people write them: ``channel:met/met.CameraA@1``, ``repository:lab/code``."""

from __future__ import annotations

from maia.authority import ObjectDescriptor, ObjectKind
from maia.encoding import did_you_mean
from maia.errors import UsageError
from maia.home.folder import Folder
from maia.home.words.asked import Right, split_owner, split_type
from maia.home.words.principals import parse_principal_text
from maia.home.words.rights import describe_tag
from maia.principals import KeyHash, PublicKey


def parse_object(text: str, home: Folder) -> ObjectDescriptor:
    """Read ``KIND:OWNER/NAME[@VERSION]``; versions are those of types.

    Raises:
        UsageError: It names no object (``OBJECT_NAME``), or a threshold owns it.
        NotFoundError: The owner is not known here.
    """
    word, mark, rest = text.strip().partition(":")
    if not mark or word not in tuple(ObjectKind):
        near = did_you_mean(word, list(ObjectKind))
        raise UsageError(f"`{text}` is no object; write KIND:OWNER/NAME{near}", code="OBJECT_NAME")
    kind = ObjectKind(word)
    if kind.on_type:
        owner, name, version = split_type(rest, home)
    else:
        (owner_text, name), version = split_owner(rest), None
        owner = parse_principal_text(owner_text, home)
    if not isinstance(owner, (PublicKey, KeyHash)):
        raise UsageError("the owner of an object is one key", code="OBJECT_NAME")
    return ObjectDescriptor(kind=kind, owner=owner.key_id, name=name, version=None if version == "*" else version)


def show_object(named: ObjectDescriptor, home: Folder) -> str:
    """Write an object for people, as `parse_object` reads it where the owner has a name here."""
    owner = home.names.get(named.owner) or f"hash:{named.owner.hex()}"
    return f"{named.kind.value}:{owner}/{named.name}" + ("" if named.version is None else f"@{named.version}")


def parse_object_right(text: str, rights: list[str], home: Folder) -> Right:
    """Read a right on an object, as `maia credential issue` gives it.

    Raises:
        UsageError: The kind has no such right: ``OBJECT_RIGHT``.
    """
    return object_right(parse_object(text, home), rights, home)


def object_right(named: ObjectDescriptor, rights: list[str], home: Folder) -> Right:
    """Give rights on an object in the form in which rights are given by hand."""
    tag = named.tag(rights)
    return Right(tag=tag, owner=KeyHash(named.owner), text=describe_tag(tag.to_sexp(), home))
