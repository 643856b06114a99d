"""Keys of earlier epochs count when the manager of their group signed them, whoever carries them."""

from __future__ import annotations

import pytest

from maia.encryption import (
    EpochId,
    KeyGroupId,
    join_public_key,
    new_join_key,
    open_earlier_keys,
    seal_earlier_keys,
)
from maia.errors import EncodingError, SealError, SignatureError
from maia.events import TypeId
from maia.principals import KeyId, KeySigner

GROUP = KeyGroupId(TypeId(bytes(32)), b"1")
MEMBER = KeyId(b"m" * 32)
MANAGER, CARRIER = KeySigner(b"a" * 32), KeySigner(b"b" * 32)
KEYS = [(EpochId(7), b"K" * 32)]


def test_whoever_carries_a_welcome_chooses_no_keys() -> None:
    """The key of a join is no secret: others can seal to it, and only the manager's signature makes keys of it."""
    private = new_join_key()
    forged = seal_earlier_keys(KEYS, join_public_key(private), group=GROUP, member=MEMBER, manager=CARRIER)
    with pytest.raises(SignatureError):
        open_earlier_keys(forged, private, group=GROUP, member=MEMBER, manager=MANAGER.public_key)
    true = seal_earlier_keys(KEYS, join_public_key(private), group=GROUP, member=MEMBER, manager=MANAGER)
    assert open_earlier_keys(true, private, group=GROUP, member=MEMBER, manager=MANAGER.public_key) == tuple(KEYS)


def test_they_are_of_one_group_member_and_join() -> None:
    """What the manager signed for one counts for nobody else."""
    private = new_join_key()
    sealed = seal_earlier_keys(KEYS, join_public_key(private), group=GROUP, member=MEMBER, manager=MANAGER)
    other = KeyGroupId(GROUP.type_id, b"2")
    with pytest.raises(SignatureError):
        open_earlier_keys(sealed, private, group=other, member=MEMBER, manager=MANAGER.public_key)
    with pytest.raises(SignatureError):
        open_earlier_keys(sealed, private, group=GROUP, member=KeyId(bytes(32)), manager=MANAGER.public_key)
    with pytest.raises(SealError):
        open_earlier_keys(sealed, new_join_key(), group=GROUP, member=MEMBER, manager=MANAGER.public_key)
    with pytest.raises(EncodingError):
        open_earlier_keys(b"(1:x)", private, group=GROUP, member=MEMBER, manager=MANAGER.public_key)
