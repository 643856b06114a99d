"""Event types as a policy speaks of them: attributes by name, values as text.

Rules kept here: a name must mean one uid of one type in all known versions; a value is read by the attribute's type,
never guessed from how it is written, and never rounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from maia.errors import MalformedError
from maia.events import Attribute, AttributeType, Owner, value_from_json
from maia.principals import KeyId, principal_id

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]{0,30})\.[0-9]{1,30}")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownType:
    """One event type as rights see it, over all its known versions.

    Attributes:
        owner: Who owns it.
        name: Its whole name.
        version: The one version that is meant; ``*`` for all of them, and later ones.
        attributes: What each attribute's name means in the known versions; more than one where they differ.
    """

    owner: Owner
    name: str
    version: str = "*"
    attributes: Mapping[str, frozenset[Attribute]] = field(hash=False)

    @property
    def owner_id(self) -> KeyId:
        """The identity of its owner."""
        return principal_id(self.owner)


def find_attribute(known: KnownType, name: str) -> Attribute:
    """Find the attribute that a name means.

    Raises:
        MalformedError: There is none (``POLICY_ATTRIBUTE``), or versions differ (``POLICY_AMBIGUOUS``).
    """
    meanings = known.attributes.get(name, frozenset())
    if not meanings:
        raise MalformedError(f"the event type `{known.name}` has no attribute `{name}`", code="POLICY_ATTRIBUTE")
    if len(meanings) > 1:
        raise MalformedError(
            f"versions of `{known.name}` mean different attributes by `{name}`", code="POLICY_AMBIGUOUS"
        )
    return next(iter(meanings))


def read_value(attribute: Attribute, text: str) -> str | int | float | bool | Decimal | date | datetime:
    """Read a constant as a value of an attribute's type.

    Raises:
        MalformedError: It is none: ``POLICY_VALUE``.
    """
    value: object = text
    if attribute.type is AttributeType.INTEGER:
        value = int(text) if _INTEGER.fullmatch(text) else text
    elif attribute.type is AttributeType.FLOAT:
        value = float(text) if _FLOAT.fullmatch(text) else text
    elif attribute.type is AttributeType.BOOLEAN:
        value = {"true": True, "false": False}.get(text, text)
    try:
        read = value_from_json(attribute, value)
    except MalformedError as error:
        message = f"`{text}` is no value of `{attribute.name}`, which is {attribute.type.value}"
        raise MalformedError(message, code="POLICY_VALUE") from error
    assert read is not None and not isinstance(read, bytes | list | dict)  # noqa: S101, PT018 - none of them is filterable
    return read
