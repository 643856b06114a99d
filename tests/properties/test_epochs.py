"""Epochs and stamps against brute force."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from maia.encryption import EpochId, KeyGroupId, Keyring, Tolerance, epoch_of, open_keyring, seal_keyring, select_epoch
from maia.errors import SealError, UnavailableError
from maia.events import TypeId
from maia.kernel import MAX_LEAD, reserve_stamps

GROUP = KeyGroupId(TypeId(bytes(32)), b"1")
moments = st.integers(0, 400)
starts = st.lists(moments, unique=True, max_size=5).map(sorted)
tolerances = st.builds(Tolerance, grace=st.integers(0, 60), skew=st.integers(0, 60))


def expected(epochs, stamp, arrives, tolerance):
    """The epoch by the words of rows 16.07, 16.08 and choice C40, or ``None`` for refused."""
    current = [start for start in epochs if start <= stamp]
    if stamp > arrives + tolerance.skew or not current:
        return None
    later = [start for start in epochs if start > current[-1]]
    return None if later and arrives > later[0] + tolerance.grace else current[-1]


@given(starts, moments, moments, tolerances)
def test_selection_equals_the_words(epochs, stamp, arrives, tolerance):
    """The key is that of the stamp, until its grace is over; the future is refused."""
    wanted = expected(epochs, stamp, arrives, tolerance)
    if wanted is None:
        with pytest.raises(SealError):
            select_epoch([EpochId(e) for e in epochs], stamp=stamp, arrives=arrives, tolerance=tolerance)
    else:
        assert select_epoch([EpochId(e) for e in epochs], stamp=stamp, arrives=arrives, tolerance=tolerance) == wanted
        assert epoch_of([EpochId(e) for e in epochs], stamp) == wanted


@given(starts, moments, moments, tolerances)
def test_retiring_keys_changes_no_selection(epochs, stamp, now, tolerance):
    """A keyring that erased its old keys refuses exactly what it would have refused before, at that time and later."""
    ring = Keyring()
    for epoch in epochs:
        ring.add(GROUP, EpochId(epoch), bytes([epoch % 251]) * 32)
    ring.retire(now=now, tolerance=tolerance)
    assert ring.epochs(GROUP) == tuple(epochs)
    for arrives in (now, now + 30):
        wanted = expected(epochs, stamp, arrives, tolerance)
        if wanted is not None:
            assert ring.key(GROUP, EpochId(wanted)) == bytes([wanted % 251]) * 32
    again = open_keyring(seal_keyring(ring, bytes(32), nonce=bytes(12)), bytes(32))
    assert [again.key(GROUP, e) for e in ring.epochs(GROUP)] == [ring.key(GROUP, e) for e in ring.epochs(GROUP)]


@given(st.lists(st.tuples(st.integers(-10_000, 10_000), st.integers(1, 5)), min_size=1, max_size=30))
def test_stamps_only_rise_whatever_the_clock_does(steps):
    """Over any walk of the clock, forwards and backwards, no stamp is given twice and none lies before another."""
    high, clock, given_out = -1, 1_000_000, []
    for step, count in steps:
        clock = max(0, clock + step)
        try:
            stamps = reserve_stamps(high, now=clock, count=count)
        except UnavailableError:  # so far back that readers would take the next stamp for one of the future
            assert high + 1 - clock > MAX_LEAD
            continue
        given_out += range(stamps.first, stamps.end)
        high = stamps.end - 1
    assert given_out == sorted(set(given_out))
