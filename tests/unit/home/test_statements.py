"""The statement file: verified again at each start, refused whole when damaged, and never going back."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from maia.authority import (
    Challenge,
    ListStatement,
    OneTimeAnswer,
    Statement,
    StatementBook,
    issue_statement,
    unsafe_sign_statement,
)
from maia.encoding import encode
from maia.errors import MaiaError, RevokedError, UnavailableError, UncheckedError, VerificationError
from maia.home import StatementFile
from maia.principals import CertificateId, KeySigner, OnlineTest, TestKind

MET, KENT = (KeySigner(bytes([n]) * 32) for n in (1, 2))
SMITH = CertificateId(b"s" * 32)
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
CRL = OnlineTest(TestKind.CRL, MET.public_key)


def plain(sequence: int, *revoked: CertificateId, signer: KeySigner = MET) -> Statement:
    """A list without an interval."""
    body = ListStatement(
        kind=TestKind.CRL, signer=signer.public_key, sequence=sequence, certificates=frozenset(revoked)
    )
    return issue_statement(body, signer)


def timed(start: int, sequence: int, *revoked: CertificateId, signer: KeySigner = MET) -> Statement:
    """A list for one hour, counted from noon."""
    body = ListStatement(
        kind=TestKind.CRL,
        signer=signer.public_key,
        sequence=sequence,
        certificates=frozenset(revoked),
        starts=NOON + start * HOUR,
        ends=NOON + (start + 1) * HOUR,
    )
    return issue_statement(body, signer)


def book_of(*statements: Statement) -> StatementBook:
    """A book that accepted these."""
    book = StatementBook()
    for statement in statements:
        book.accept(statement)
    return book


def test_a_book_comes_back_as_it_was(tmp_path: Path) -> None:
    """Lists of several signers and spent nonces survive; the file is for its owner alone."""
    file = StatementFile(tmp_path / "home" / "statements")
    book = book_of(timed(0, 1), timed(1, 2, SMITH), timed(5, 3), plain(7, SMITH, signer=KENT))
    book.use([b"n" * 16])
    file.save(book)
    again = file.load()
    assert set(again.raw_statements()) == set(book.raw_statements())
    assert again.used_nonces == book.used_nonces
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    with pytest.raises(RevokedError):
        again.check(CRL, SMITH, at=NOON + HOUR)


def test_without_a_file_nothing_is_known_which_denies(tmp_path: Path) -> None:
    """Absence is not validity."""
    with pytest.raises(UncheckedError):
        StatementFile(tmp_path / "none").load().check(CRL, SMITH, at=NOON)


ROLLBACKS = {
    "an older plain list": (plain(5, SMITH), plain(4), "STATEMENT_ROLLBACK"),
    "another plain list of the same number": (plain(5, SMITH), plain(5), "STATEMENT_ROLLBACK"),
    "a later list with a lower number": (timed(0, 5, SMITH), timed(1, 4), "STATEMENT_ROLLBACK"),
    "the same interval with a lower number": (timed(0, 5, SMITH), timed(0, 4), "STATEMENT_OVERLAP"),
}


@pytest.mark.threat("T28")
@pytest.mark.parametrize("held, old, code", ROLLBACKS.values(), ids=ROLLBACKS)
def test_an_old_list_is_ignored_after_a_restart_too(tmp_path: Path, held: Statement, old: Statement, code: str) -> None:
    """What the book refused before the restart it refuses after it, and the revocation stands."""
    file = StatementFile(tmp_path / "statements")
    file.save(book_of(held))
    for _ in range(2):  # and after a second restart
        book = file.load()
        with pytest.raises(VerificationError) as caught:
            book.accept(old)
        assert caught.value.code == code
        with pytest.raises(RevokedError):
            book.check(CRL, SMITH, at=NOON)
        file.save(book)


@pytest.mark.threat("T28")
def test_a_book_that_missed_the_newest_list_is_not_written_over_it(tmp_path: Path) -> None:
    """Two processes share a file: the one that loaded earlier cannot bring the old list back."""
    file = StatementFile(tmp_path / "statements")
    for newer, older in ((plain(2, SMITH), plain(1)), (timed(3, 3, SMITH, signer=KENT), timed(2, 2, signer=KENT))):
        book = file.load()
        book.accept(newer)
        file.save(book)
        before = file.path.read_bytes()
        for stale in (book_of(older), StatementBook()):
            with pytest.raises(UnavailableError) as caught:
                file.save(stale)
            assert caught.value.code == "STATEMENTS_NEWER_ON_DISK"
            assert file.path.read_bytes() == before


def test_a_spent_answer_stays_spent_after_a_restart(tmp_path: Path) -> None:
    """An answer to a challenge serves one decision, also when the second follows a restart."""
    file = StatementFile(tmp_path / "statements")
    test = OnlineTest(TestKind.ONE_TIME, MET.public_key)
    challenge = Challenge(nonce=b"n" * 16, verifier="kent", until=NOON + HOUR)
    answer = issue_statement(
        OneTimeAnswer(signer=MET.public_key, nonce=challenge.nonce, verifier="kent", certificates=frozenset((SMITH,))),
        MET,
    )
    book = book_of(answer)
    assert book.check(test, SMITH, at=NOON, challenge=challenge).nonce == challenge.nonce
    book.use([challenge.nonce])
    file.save(book)
    file.save(StatementBook())  # a process that never saw the nonce does not set it free
    again = file.load()
    again.accept(answer)
    with pytest.raises(UncheckedError):
        again.check(test, SMITH, at=NOON, challenge=challenge)


def test_a_list_for_the_far_future_does_not_lock_the_file(tmp_path: Path) -> None:
    """A signer whose lists came out of order can still be loaded: each was accepted, so all are."""
    file = StatementFile(tmp_path / "statements")
    book = book_of(timed(100, 1), timed(0, 8), timed(1, 9))
    file.save(book)
    assert set(file.load().raw_statements()) == set(book.raw_statements())


def test_lists_that_are_over_can_be_forgotten_and_saved(tmp_path: Path) -> None:
    """Forgetting the past is no step back: the newest list stays, and its number binds what comes later."""
    file = StatementFile(tmp_path / "statements")
    file.save(book_of(timed(0, 1), timed(1, 2), timed(2, 3)))
    book = file.load()
    book.forget_before(NOON + 10 * HOUR)
    file.save(book)
    again = file.load()
    assert timed(0, 1).raw not in again.raw_statements()
    assert timed(2, 3).raw in again.raw_statements()
    with pytest.raises(VerificationError):
        again.accept(timed(4, 3))


def test_every_damaged_octet_refuses_the_whole_file(tmp_path: Path) -> None:
    """One flipped bit anywhere in the lists never gives half a book."""
    file = StatementFile(tmp_path / "statements")
    file.save(book_of(plain(3, SMITH)))
    whole = file.path.read_bytes()
    for position in range(whole.index(b"(6:nonces")):
        for bit in (1, 64):
            damaged = bytearray(whole)
            damaged[position] ^= bit
            file.path.write_bytes(damaged)
            with pytest.raises(MaiaError):
                file.load()
    for length in range(0, len(whole), 7):
        file.path.write_bytes(whole[:length])
        with pytest.raises(MaiaError):
            file.load()


FORGED = {
    "signed by another key": unsafe_sign_statement(plain(3, SMITH).body, KENT),
    "no statement": b"junk",
    "a list inside": (b"x",),
}


@pytest.mark.parametrize("item", FORGED.values(), ids=FORGED)
def test_a_forged_statement_on_disk_is_refused(tmp_path: Path, item: bytes | tuple[bytes, ...]) -> None:
    """Statements are verified again; a good one beside a forged one does not count either."""
    good = plain(1).raw
    data = encode((b"statements", (b"version", b"1"), (b"lists", good, item), (b"nonces",)))
    (tmp_path / "statements").write_bytes(data)
    with pytest.raises(MaiaError):
        StatementFile(tmp_path / "statements").load()


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    """A later version may say more; reading it half would forget."""
    (tmp_path / "statements").write_bytes(encode((b"statements", (b"version", b"2"), (b"lists",), (b"nonces",))))
    with pytest.raises(MaiaError) as caught:
        StatementFile(tmp_path / "statements").load()
    assert caught.value.code == "FORMAT_NEWER"


def test_a_damaged_file_is_not_overwritten(tmp_path: Path) -> None:
    """Saving over what cannot be read would forget what it held."""
    path = tmp_path / "statements"
    path.write_bytes(b"damaged")
    with pytest.raises(MaiaError):
        StatementFile(path).save(book_of(plain(1)))
    assert path.read_bytes() == b"damaged"


def test_a_failed_replacement_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error between writing and moving changes nothing and leaves no draft."""
    file = StatementFile(tmp_path / "statements")
    file.save(book_of(plain(1)))
    before = file.path.read_bytes()

    def fail(*_: object) -> NoReturn:
        raise OSError(5, "input/output error")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(UnavailableError):
        file.save(book_of(plain(2, SMITH)))
    assert file.path.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"statements", ".statements.lock"}


KILLED = """
import os, signal, sys
from pathlib import Path
from maia.authority import StatementBook, parse_statement, verify_statement
from maia.home import StatementFile
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, sys.argv[3], die)
book = StatementBook()
book.accept(verify_statement(parse_statement(bytes.fromhex(sys.argv[2]))))
StatementFile(Path(sys.argv[1])).save(book)
"""


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_process_killed_while_saving_leaves_the_old_file_whole(tmp_path: Path, moment: str) -> None:
    """A kill -9 before the move: the old list is in force, and the next process can save."""
    file = StatementFile(tmp_path / "statements")
    file.save(book_of(plain(1, SMITH)))
    before = file.path.read_bytes()
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(file.path), plain(2).raw.hex(), moment], check=False, capture_output=True
    )
    assert run.returncode == -signal.SIGKILL
    assert file.path.read_bytes() == before
    file.save(book_of(plain(2)))
    assert file.load().raw_statements() == (plain(2).raw,)
