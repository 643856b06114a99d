"""Keyed type ids: what a type is called on the wire, so that outsiders cannot tell which types a network carries.

A type id is a hash of the owner's key and the type's name, and names can be guessed. On a network with keyed ids a
parcel bears the HMAC of the type id under a key that members of the network hold, and the key changes by epochs like
any other. Rules kept here:

- the id of an epoch says nothing about the type, nor about the id of another epoch, to anybody without the key;
- while epochs change several ids stand for a type: the current one, the one before for the grace of its key, and one
  that is announced. Whoever routes or reads takes all of them, so nothing is lost (row 23.03);
- the evidence behind an origin's right names the type too, so it is sealed under the same key. The same evidence gives
  the same octets in one epoch, so it is kept once;
- without the key of the network nothing is published: a plain id would tell what the others hide.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maia.encoding import SexpLimits, encode, parse_canonical
from maia.encryption.epochs import EpochId, epoch_of
from maia.encryption.keyring import KeyGroupId, KeyProvider
from maia.errors import EncodingError, SealError
from maia.events import TypeId

MAX_EPOCHS = 10_000
_LIMITS = SexpLimits(max_bytes=16 << 20, max_depth=2, max_atom=1 << 20)
_NONCE = 12
_DIGITS = 16


def keyed_type_id(type_id: TypeId, key: bytes, epoch: EpochId) -> TypeId:
    """Give the id of a type in one epoch of the network's key.

    >>> one, two = (keyed_type_id(TypeId(bytes(32)), key, EpochId(100)) for key in (b"a" * 32, b"b" * 32))
    >>> len(one), one == two, one == keyed_type_id(TypeId(bytes(32)), b"a" * 32, EpochId(100))
    (32, False, True)
    """
    return TypeId(hmac.digest(key, encode((b"maia/1 type id", b"%d" % epoch, type_id)), hashlib.sha256))


class TypeIds:
    """The ids of types on one network, as far as its keys are held. Never travels."""

    __slots__ = ("_group", "_keys")

    def __init__(self, keys: KeyProvider, group: KeyGroupId) -> None:
        """Use the keys of the network's group."""
        self._keys = keys
        self._group = group

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse: keys never travel in a pickle."""
        raise TypeError("the ids of a network cannot be pickled")

    def at(self, type_id: TypeId, stamp: int) -> TypeId:
        """Return the id to publish under at an instant.

        Raises:
            SealError: The network's key of that time is not held: ``NO_KEY``.

        >>> from maia.encryption import Keyring
        >>> ring, group = Keyring(), KeyGroupId(TypeId(bytes(32)), b"*")
        >>> ring.add(group, EpochId(100), b"a" * 32)
        >>> TypeIds(ring, group).at(TypeId(b"t" * 32), 150) == keyed_type_id(TypeId(b"t" * 32), b"a" * 32, EpochId(100))
        True
        """
        epoch, key = self._current(stamp)
        return keyed_type_id(type_id, key, epoch)

    def known(self, type_id: TypeId) -> frozenset[TypeId]:
        """Return the ids of a type in all epochs whose key is held, the newest 10,000: what a reader of a log takes."""
        return frozenset(keyed_type_id(type_id, key, epoch) for epoch, key in self._held(MAX_EPOCHS))

    def seal_evidence(self, certificates: Iterable[bytes], stamp: int) -> bytes:
        """Seal the certificates behind an origin's right; the same ones give the same octets in one epoch.

        Raises:
            SealError: The network's key of that time is not held: ``NO_KEY``.
        """
        epoch, key = self._current(stamp)
        plain = encode((b"evidence", *certificates))
        wrapping, naming = (_derive(key, purpose) for purpose in (b"seal", b"nonce"))
        # The nonce is a function of the plaintext under a key of its own, so it repeats only with the plaintext.
        nonce = hmac.digest(naming, plain, hashlib.sha256)[:_NONCE]
        return encode((b"sealed-evidence", b"%d" % epoch, nonce, AESGCM(wrapping).encrypt(nonce, plain, b"%d" % epoch)))

    def open_evidence(self, data: bytes) -> tuple[bytes, ...]:
        """Open what `seal_evidence` sealed; nothing when it cannot be opened here, which proves nothing.

        >>> from maia.encryption import Keyring
        >>> ring, group = Keyring(), KeyGroupId(TypeId(bytes(32)), b"*")
        >>> ring.add(group, EpochId(100), b"a" * 32)
        >>> ids = TypeIds(ring, group)
        >>> sealed = ids.seal_evidence([b"a certificate"], 150)
        >>> b"certificate" in sealed, ids.open_evidence(sealed), ids.open_evidence(sealed[:-1])
        (False, (b'a certificate',), ())
        """
        try:
            match parse_canonical(data, limits=_LIMITS):
                case (b"sealed-evidence", bytes(text), bytes(nonce), bytes(sealed)) if (
                    text.isdigit() and len(text) <= _DIGITS
                ):
                    key = self._keys.key(self._group, EpochId(int(text)))
                case _:
                    return ()
            if key is None:
                return ()
            plain = AESGCM(_derive(key, b"seal")).decrypt(nonce, sealed, text)
            opened = parse_canonical(plain, limits=_LIMITS)
        except (EncodingError, InvalidTag, ValueError):
            return ()
        return tuple(item for item in opened[1:] if isinstance(item, bytes)) if isinstance(opened, tuple) else ()

    def _current(self, stamp: int) -> tuple[EpochId, bytes]:
        epoch = epoch_of(self._keys.epochs(self._group), stamp)
        key = self._keys.key(self._group, epoch)
        if key is None:
            raise SealError("the network's key of this time is not held", code="NO_KEY")
        return epoch, key

    def _held(self, most: int) -> list[tuple[EpochId, bytes]]:
        pairs = ((epoch, self._keys.key(self._group, epoch)) for epoch in self._keys.epochs(self._group)[-most:])
        return [(epoch, key) for epoch, key in pairs if key is not None]


def _derive(key: bytes, purpose: bytes) -> bytes:
    return hmac.digest(key, b"maia/1 evidence " + purpose, hashlib.sha256)
