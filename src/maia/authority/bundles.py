"""Several signed objects in one document, as they are handed over without a session: each is believed by itself.

(statements <signed list or answer> …)      (certificates <signed certificate> …)
"""

from __future__ import annotations

from collections.abc import Iterable

from maia.encoding import SexpLimits, encode, parse_canonical
from maia.errors import EncodingError

MAX_BUNDLE = 1 << 18
"""The octets of a bundle."""
_MAX_ITEMS = 256
_LIMITS = SexpLimits(max_bytes=MAX_BUNDLE, max_depth=3, max_atom=MAX_BUNDLE)


def bundle(word: bytes, items: Iterable[bytes]) -> bytes:
    """Put signed objects together.

    >>> open_bundle(b"statements", bundle(b"statements", [b"one", b"two"]))
    (b'one', b'two')
    """
    return encode((word, *items))


def open_bundle(word: bytes, data: bytes) -> tuple[bytes, ...]:
    """Take a bundle apart; nothing in it is believed yet.

    Raises:
        EncodingError: It is none, or holds too much: ``BUNDLE_SHAPE``.
    """
    match parse_canonical(data, limits=_LIMITS):
        case (bytes() as found, *items) if found == word and len(items) <= _MAX_ITEMS:
            raws = tuple(item for item in items if isinstance(item, bytes))
            if len(raws) == len(items):
                return raws
    raise EncodingError(f"not a bundle of {word.decode()}", code="BUNDLE_SHAPE")
