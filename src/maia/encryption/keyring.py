"""Keys by group and epoch: what a broker may open and seal with, and how often it did.

A key group is one attribute of one type, or a whole type in event mode. A keyring holds each group's keys by the start
of their epoch. It is written down only sealed; `Keyring.to_bytes` is for that sealing and for nothing else.

Rules kept here: one key per group and epoch, never replaced by another; epochs are added in order; a key that was used
more often than its cap seals no more; a retired key is erased, but the start of its epoch stays known, so that an event
of that time is refused instead of passing for one that was always closed. An epoch that this broker must not have is
known by its start too, so that nothing of its time is tried with the key before.
"""

from __future__ import annotations

import hashlib
import hmac
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.encryption.epochs import EpochId, Tolerance, epoch_of
from maia.encryption.header import WHOLE_EVENT
from maia.errors import EncodingError, SealError, UsageError
from maia.events import EncryptionMode, TypeId

KEY_LENGTH = 32
DEFAULT_CAP = 1 << 30
_NONCE_LENGTH = 12
_ERASED = b""
KEYRING_LIMITS = SexpLimits(max_bytes=64 << 20, max_depth=6, max_atom=1024)


@dataclass(frozen=True, slots=True, order=True)
class KeyGroupId:
    """Which key group: a type and a block label (a uid, or ``*`` for the whole event)."""

    type_id: TypeId
    label: bytes


def groups_of(type_id: TypeId, uids: Iterable[bytes], mode: EncryptionMode) -> tuple[KeyGroupId, ...]:
    """List the key groups that sealing in a mode needs.

    >>> tuple(group.label for group in groups_of(TypeId(bytes(32)), [b"1", b"2"], EncryptionMode.ATTRIBUTE))
    (b'1', b'2')
    >>> tuple(group.label for group in groups_of(TypeId(bytes(32)), [b"1", b"2"], EncryptionMode.EVENT))
    (b'*',)
    """
    if mode is EncryptionMode.PLAIN:
        return ()
    labels = (WHOLE_EVENT,) if mode is EncryptionMode.EVENT else tuple(uids)
    return tuple(KeyGroupId(type_id, label) for label in labels)


class KeyProvider(Protocol):
    """Where keys come from. Built where it is used, from a reference; it never travels."""

    def epochs(self, group: KeyGroupId) -> tuple[EpochId, ...]:
        """Return the starts of the group's known epochs, increasing."""
        ...

    def key(self, group: KeyGroupId, epoch: EpochId) -> bytes | None:
        """Return the key of an epoch, or ``None`` when this broker may not have it."""
        ...


class Keyring:
    """Keys in memory."""

    __slots__ = ("_cap", "_keys", "_uses")

    def __init__(self, *, cap: int = DEFAULT_CAP) -> None:
        """Start empty. ``cap`` bounds how many blocks one key seals."""
        self._keys: dict[KeyGroupId, dict[EpochId, bytes]] = {}
        self._uses: dict[tuple[KeyGroupId, EpochId], int] = {}
        self._cap = cap

    def __repr__(self) -> str:
        """Count, never show."""
        return f"Keyring({len(self._keys)} groups)"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse: keys never travel in a pickle."""
        raise TypeError("a keyring cannot be pickled")

    def groups(self) -> tuple[KeyGroupId, ...]:
        """List the groups, sorted."""
        return tuple(sorted(self._keys))

    def epochs(self, group: KeyGroupId) -> tuple[EpochId, ...]:
        """Return the starts of the group's known epochs, increasing."""
        return tuple(sorted(self._keys.get(group, ())))

    def key(self, group: KeyGroupId, epoch: EpochId) -> bytes | None:
        """Return the key of an epoch, or ``None`` when it was never here or is retired."""
        return self._keys.get(group, {}).get(epoch) or None

    def add(self, group: KeyGroupId, epoch: EpochId, key: bytes) -> None:
        """Take a key.

        Raises:
            UsageError: The length is wrong, or the epoch already has another key.
        """
        if len(key) != KEY_LENGTH:
            raise UsageError(f"a group key has {KEY_LENGTH} octets")
        if epoch < 0:
            raise UsageError("an epoch starts in 1970 or later")
        keys = self._keys.setdefault(group, {})
        if keys.get(epoch) == _ERASED and epoch == max(keys):
            del keys[epoch]  # it was closed and not retired, since the newest never is: now we may have it
        if not hmac.compare_digest(keys.setdefault(epoch, bytes(key)), key):
            # INVARIANT: also true of a retired epoch, whose key does not come back.
            raise UsageError("an epoch has one key", code="EPOCH_REUSED")

    def close(self, group: KeyGroupId, epoch: EpochId) -> None:
        """Learn that an epoch began whose key this broker may not have.

        Raises:
            UsageError: It has the key: ``EPOCH_REUSED``.
        """
        if self._keys.setdefault(group, {}).setdefault(epoch, _ERASED):
            raise UsageError("an epoch has one key", code="EPOCH_REUSED")

    def adopt(self, other: Keyring) -> None:
        """Hold what another keyring holds, instead of what was held; the counts of uses go on."""
        self._keys = {group: dict(keys) for group, keys in other._keys.items()}
        for use, count in other._uses.items():
            self._uses[use] = max(count, self._uses.get(use, 0))

    def sealing_epoch(self, group: KeyGroupId, stamp: int) -> EpochId:
        """Return the epoch to seal an event of this stamp in, and count the use.

        Raises:
            SealError: There is no key for the stamp, or it was used too often.
        """
        epoch = epoch_of(self.epochs(group), stamp)
        used = self._uses.get((group, epoch), 0) + 1
        if used > self._cap:
            raise SealError("the key was used too often and must be refreshed", code="KEY_EXHAUSTED")
        self._uses[group, epoch] = used
        return epoch

    def uses(self, group: KeyGroupId, epoch: EpochId) -> int:
        """Tell how many blocks were sealed with a key."""
        return self._uses.get((group, epoch), 0)

    def retire(self, *, now: int, tolerance: Tolerance, type_id: TypeId | None = None) -> int:
        """Erase the keys, of one type or of all, whose grace is over; return how many. Their epochs stay known."""
        gone = 0
        for group, keys in self._keys.items():
            if type_id not in (None, group.type_id):
                continue
            starts = sorted(keys)
            for start, following in pairwise(starts):
                if keys[start] and now > following + tolerance.grace + tolerance.deaf:
                    keys[start] = _ERASED
                    self._uses.pop((group, start), None)
                    gone += 1
        return gone

    def to_bytes(self) -> bytes:
        """Write all keys, in the clear, for sealing."""
        groups: list[Sexp] = []
        for group in self.groups():
            keys = self._keys[group]
            entries = tuple((b"%d" % epoch, keys[epoch], b"%d" % self.uses(group, epoch)) for epoch in sorted(keys))
            groups.append((b"group", group.type_id, group.label, *entries))
        return encode((b"keyring", (b"version", b"1"), *groups))

    @classmethod
    def from_bytes(cls, data: bytes, *, cap: int = DEFAULT_CAP) -> Keyring:
        """Read what `to_bytes` wrote.

        Raises:
            EncodingError: It is no keyring.
        """
        ring = cls(cap=cap)
        match parse_canonical(data, limits=KEYRING_LIMITS):
            case (b"keyring", (b"version", b"1"), *groups):
                for group in groups:
                    ring._read_group(group)
            case _:
                raise EncodingError("not a keyring", code="KEYRING_SHAPE")
        return ring

    def _read_group(self, expression: Sexp) -> None:
        match expression:
            case (b"group", bytes() as type_id, bytes() as label, *entries):
                group = KeyGroupId(TypeId(type_id), label)
            case _:
                raise EncodingError("not a key group", code="KEYRING_SHAPE")
        for entry in entries:
            match entry:
                case (bytes() as epoch, bytes() as key, bytes() as uses) if (
                    epoch.isdigit() and uses.isdigit() and len(key) in {KEY_LENGTH, len(_ERASED)}
                ):
                    self._keys.setdefault(group, {})[EpochId(int(epoch))] = key
                    if int(uses):
                        self._uses[group, EpochId(int(epoch))] = int(uses)
                case _:
                    raise EncodingError("not a key of a group", code="KEYRING_SHAPE")


def keyring_secret(seed: bytes) -> bytes:
    """Derive the key that seals a broker's keyring from the broker's own private key.

    >>> keyring_secret(bytes(32)) == keyring_secret(bytes(32)) != bytes(32)
    True
    """
    return hmac.digest(seed, b"maia/1 keyring\x01", hashlib.sha256)


def seal_keyring(ring: Keyring, secret: bytes, *, nonce: bytes) -> bytes:
    """Seal a keyring for storage; the nonce must be fresh.

    >>> ring, group = Keyring(), KeyGroupId(TypeId(bytes(32)), b"3265")
    >>> ring.add(group, EpochId(100), bytes([7]) * 32)
    >>> stored = seal_keyring(ring, keyring_secret(bytes(32)), nonce=bytes(12))
    >>> bytes([7]) * 32 in stored
    False
    >>> open_keyring(stored, keyring_secret(bytes(32))).epochs(group)
    (100,)
    """
    if len(nonce) != _NONCE_LENGTH:
        raise UsageError(f"a nonce has {_NONCE_LENGTH} octets")
    return nonce + AESGCM(secret).encrypt(nonce, ring.to_bytes(), b"maia/1 keyring")


def open_keyring(data: bytes, secret: bytes, *, cap: int = DEFAULT_CAP) -> Keyring:
    """Open a stored keyring.

    Raises:
        SealError: The secret is wrong or the data is damaged.

    >>> open_keyring(b"damaged", keyring_secret(bytes(32)))
    Traceback (most recent call last):
    ...
    maia.errors.SealError: [SEAL] the keyring cannot be opened
    """
    try:
        plain = AESGCM(secret).decrypt(data[:_NONCE_LENGTH], data[_NONCE_LENGTH:], b"maia/1 keyring")
        return Keyring.from_bytes(plain, cap=cap)
    except (InvalidTag, ValueError, EncodingError) as error:
        raise SealError("the keyring cannot be opened") from error


def current_epoch(provider: KeyProvider, group: KeyGroupId, stamp: int) -> EpochId | None:
    """Return the epoch current at a stamp, or ``None`` when no key is known.

    >>> ring, group = Keyring(), KeyGroupId(TypeId(bytes(32)), b"3265")
    >>> ring.add(group, EpochId(100), bytes([7]) * 32)
    >>> current_epoch(ring, group, 150), current_epoch(ring, group, 99)
    (100, None)
    """
    epochs = provider.epochs(group)
    index = bisect_right(epochs, stamp)
    return epochs[index - 1] if index else None
