"""Version numbers: a counter, a UUID, or the hash of the attribute set. Versions are equal or not, never earlier.

Each form has exactly one spelling: plain decimal, the 36-character UUID in lower case, or the 64 hexadecimal
digits of a SHA-256 in lower case. There is no order, not even between counters: two managers may count side by side.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from maia.encoding import encode
from maia.errors import MalformedError
from maia.events.attributes import Attribute

_COUNTER = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Version:
    """A version number in its only spelling. It has no order: ``<`` between versions is an error."""

    text: str

    def __post_init__(self) -> None:
        """Refuse what is no counter, UUID or hash."""
        if not any(form.fullmatch(self.text) for form in (_COUNTER, _UUID, _HASH)):
            raise MalformedError(
                "a version is a plain decimal, a UUID or the hash of the attributes", code="VERSION_FORM"
            )

    @property
    def counter(self) -> int | None:
        """The number, when the version is a counter."""
        return int(self.text) if _COUNTER.fullmatch(self.text) else None

    def __str__(self) -> str:
        """Show the text."""
        return self.text


def parse_version(value: int | str) -> Version:
    """Read a version from a counter or from its text.

    >>> parse_version(8516) == parse_version("8516")
    True
    """
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise MalformedError("a version is a number or a text", code="VERSION_FORM")
    return Version(str(value) if isinstance(value, int) else value)


FIRST = Version("0")
"""The version a type may always start with, whoever manages it later."""


def uuid_version(source: Callable[[], uuid.UUID] = uuid.uuid4) -> Version:
    """Make a version that no other manager makes, without asking anybody."""
    return Version(str(source()))


def hash_version(attributes: Iterable[Attribute]) -> Version:
    """Make the version that stands for exactly this set of attributes.

    Only the set counts, not its order, nor who signs or with which credentials, so managers who arrive at equal sets
    arrive at equal versions.

    >>> from maia.events.attributes import attribute
    >>> a, b = attribute("speed", 0, "integer"), attribute("plate", 1, "string")
    >>> hash_version((a, b)) == hash_version((b, a)) != hash_version((a,))
    True
    """
    items = sorted((item.uid.encode(), item.name.encode(), item.type.value.encode()) for item in attributes)
    return Version(hashlib.sha256(encode((b"attributes", *items))).hexdigest())


def next_counter(version: Version) -> Version:
    """Count one further; for types with a single manager.

    Raises:
        MalformedError: The version is no counter, so that there is no next one.
    """
    if version.counter is None:
        raise MalformedError(f"version `{version}` is no counter, so there is no next one", code="VERSION_FORM")
    return Version(str(version.counter + 1))
