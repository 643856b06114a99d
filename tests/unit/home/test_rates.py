"""The ledger of rates: exact in every stretch of time, shared, and kept through restarts and retries."""

from __future__ import annotations

import random
import subprocess
import sys
from datetime import timedelta

import pytest

from maia.errors import UnavailableError, UsageError
from maia.home.rates import RateLedger
from maia.policy import RateLimit
from maia.testing import at

TEN = RateLimit(count=10, period=timedelta(minutes=1))


def draw(ledger: RateLedger, when: float, count: int = 1, *, name: bytes = b"", bucket: bytes = b"b") -> int:
    """Draw from the account of the tests."""
    return ledger.reserve(TEN, bucket=bucket, reservation=name, count=count, at=at(0) + timedelta(seconds=when))


def test_the_eleventh_waits_for_the_first_to_be_a_period_old(tmp_path):
    """Ten in a minute, wherever the minute starts."""
    ledger = RateLedger(tmp_path / "rates.db")
    assert [draw(ledger, second) for second in range(12)] == [1] * 10 + [0, 0]
    assert [draw(ledger, when) for when in (59.999, 60, 60.5, 61)] == [0, 1, 0, 1]


def test_a_part_of_what_is_wanted_may_be_granted(tmp_path):
    """The ledger grants what is left."""
    ledger = RateLedger(tmp_path / "rates.db")
    assert [draw(ledger, 0, 7), draw(ledger, 1, 7), draw(ledger, 2, 7)] == [7, 3, 0]


def test_accounts_are_separate(tmp_path):
    """One's flood is not another's."""
    ledger = RateLedger(tmp_path / "rates.db")
    assert draw(ledger, 0, 99) == 10
    assert draw(ledger, 0, 1, bucket=b"c") == 1


def test_a_draw_that_is_tried_again_counts_once(tmp_path):
    """The same name is granted the same again, also after a restart and when the account is empty."""
    path = tmp_path / "rates.db"
    assert draw(RateLedger(path), 0, 6, name=b"p/0") == 6
    assert draw(RateLedger(path), 1, 6, name=b"p/1") == 4
    assert [draw(RateLedger(path), 2, 6, name=name) for name in (b"p/0", b"p/1", b"p/2")] == [6, 4, 0]
    assert draw(RateLedger(path), 3, 2, name=b"p/0") == 2


def test_a_clock_that_goes_back_frees_nothing(tmp_path):
    """What was drawn later than now still counts."""
    ledger = RateLedger(tmp_path / "rates.db")
    assert draw(ledger, 5000, 10) == 10
    assert draw(ledger, 10, 1) == 0


def test_a_flood_leaves_no_trace(tmp_path):
    """What is refused is not written; what is old is forgotten."""
    path = tmp_path / "rates.db"
    ledger = RateLedger(path)
    draw(ledger, 0, 10)
    size = path.stat().st_size
    for _ in range(50):
        assert draw(ledger, 1, 1_000) == 0
    assert path.stat().st_size == size
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_ledger_that_cannot_be_used_grants_nothing(tmp_path):
    """A damaged file is an error with a code, and so is a negative draw."""
    path = tmp_path / "rates.db"
    path.write_bytes(b"no database at all, " * 100)
    with pytest.raises(UnavailableError) as caught:
        draw(RateLedger(path), 0)
    assert caught.value.code == "RATE_LEDGER"
    with pytest.raises(UsageError):
        draw(RateLedger(tmp_path / "other.db"), 0, -1)


def test_processes_that_draw_at_once_get_no_more_together(tmp_path):
    """Four processes, thirty draws each: ten are granted."""
    program = (
        "import sys; from datetime import timedelta; from maia.policy import RateLimit; from maia.testing import at; "
        "from maia.home.rates import RateLedger; ledger = RateLedger(sys.argv[1]); "
        "ten = RateLimit(count=10, period=timedelta(minutes=1)); "
        "print(sum(ledger.reserve(ten, bucket=b'b', reservation=b'', count=1, at=at(n // 10)) for n in range(30)))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "rates.db")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert sum(int(process.communicate()[0]) for process in running) == 10


def test_no_stretch_of_time_holds_more_than_the_rate(tmp_path):
    """Random draws, compared with a count over every stretch that ends at a draw."""
    numbers = random.Random(7)
    ledger, granted, when = RateLedger(tmp_path / "rates.db"), [], 0.0
    for _ in range(300):
        when += numbers.choice((0.0, 0.5, 3.0, 20.0))
        wanted = numbers.randint(1, 4)
        got = draw(ledger, when, wanted)
        granted.append((when, got))
        within = sum(count for moment, count in granted if moment > when - 60)
        assert within <= 10
        assert got == wanted or within == 10  # and nothing is held back
