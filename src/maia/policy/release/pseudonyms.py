"""Pseudonyms: one secret of a domain, a key for each scope and attribute, and a text for each value; and an order.

Rules kept here:

- the same value of the same attribute has the same pseudonym within a scope, in whatever type it stands;
- pseudonyms of two scopes, or of two attributes, have nothing in common, and without the secret nobody can tell which
  value one stands for, nor try all of them;
- no value has no pseudonym: rows without one are not linked with one another;
- rows for two destinations come in orders that have nothing in common, so that a row's place links no pseudonyms.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from maia.encoding import encode
from maia.errors import UsageError
from maia.policy.release.rules import Destination

SECRET_LENGTH = 32
"""Octets of a domain's secret."""
_PREFIX = b"maia/1 pseudonym"
_ORDER = b"maia/1 order of rows"
_LENGTH = 16


def pseudonym_key(secret: bytes, scope: Destination, attribute: str) -> bytes:
    """Derive the key of one scope and attribute from a domain's secret (HKDF, SHA-256).

    >>> from maia.policy.release import parse_destination
    >>> one, other = (pseudonym_key(bytes(32), parse_destination(text), "x") for text in ("study(a)", "study(b)"))
    >>> one == other
    False

    Raises:
        UsageError: The secret has another length: ``RELEASE_SECRET``.
    """
    return _derived(secret, _PREFIX, scope.kind.value.encode(), scope.name.encode(), attribute.encode())


def order_key(secret: bytes, to: Destination) -> bytes:
    """Derive the key of the order in which rows leave to a destination.

    Raises:
        UsageError: The secret has another length: ``RELEASE_SECRET``.
    """
    return _derived(secret, _ORDER, to.kind.value.encode(), to.name.encode())


def pseudonyms(key: bytes, values: Iterable[bytes]) -> list[str]:
    """Give the pseudonym of each value: 128 bits, in hex.

    >>> pseudonyms(bytes(32), [b"1234567768", b"1234567768"])[0] == pseudonyms(bytes(32), [b"1234567768"])[0]
    True
    """
    return [hmac.digest(key, value, hashlib.sha256)[:_LENGTH].hex() for value in values]


def row_places(key: bytes, events: Iterable[str]) -> list[bytes]:
    """Give what rows are sorted by, from the ids of their events.

    >>> row_places(bytes(32), ["a"]) == row_places(bytes(32), ["a"]) != row_places(bytes(32), ["b"])
    True
    """
    return [hmac.digest(key, event.encode(), hashlib.sha256) for event in events]


def _derived(secret: bytes, *about: bytes) -> bytes:
    if len(secret) != SECRET_LENGTH:
        raise UsageError(f"a secret of releases has {SECRET_LENGTH} octets", code="RELEASE_SECRET")
    # An S-expression has one reading, so no name can be cut into two others.
    extracted = hmac.digest(_PREFIX, secret, hashlib.sha256)
    return hmac.digest(extracted, encode(about) + b"\x01", hashlib.sha256)
