"""The journal of an audit: intents and results, chained and signed; what a crash or a hand changes is found."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import EncodingError, UnavailableError
from maia.log import (
    EARLIER_SCHEMA,
    OK,
    Audit,
    AuditRow,
    CheckedAudit,
    check_audit,
    process_name,
    read_audit,
    read_waiting,
)
from maia.log.audit import journal
from maia.log.audit.entries import parse_entry
from maia.log.audit.files import read_head
from maia.principals import KeySigner

AT = datetime(2026, 6, 1, 9, tzinfo=UTC)
SIGNER = KeySigner(b"a" * 32)


def row(kind: str = "intent", code: str = "READ", *, events: int = 0, at: datetime = AT) -> AuditRow:
    """Make a row of a client's."""
    return AuditRow(
        at=at, kind=kind, principal="k1", type_id="aa", source="2 commits", subject="smith", code=code, events=events,
        attributes=("plate", "when"), closed=("when",), filter="plate = 'Ä'", plan="ab", certificates=("cc", "dd"),
    )  # fmt: skip


@dataclass
class Home:
    """An audit, and the head that is remembered beside it."""

    path: Path

    @property
    def folder(self) -> Path:
        """The audit's folder."""
        return self.path / "audit"

    @property
    def head(self) -> Path:
        """Where the head is remembered."""
        return self.path / "audit-head"

    def audit(self) -> Audit:
        """Open it as a process does."""
        return Audit(self.folder, self.head, SIGNER)

    def check(self) -> CheckedAudit:
        """Check it."""
        return check_audit(self.folder, self.head, SIGNER.public_key, at=AT)

    def codes(self) -> set[str]:
        """Name what is wrong with it."""
        return {item.code for item in self.check().breaks}

    def file(self) -> Path:
        """Give its newest file."""
        return max((self.folder / "journal").glob("*.jsonl"))

    def lines(self) -> list[bytes]:
        """Give the lines of its newest file, with their ends."""
        return self.file().read_bytes().splitlines(keepends=True)

    def told(self) -> list[tuple[str, str]]:
        """Give kinds and codes."""
        return [(item.kind, item.code) for item in read_audit(self.folder)]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Give a home with three operations in its audit: five entries behind the first, which begins it."""
    made = Home(tmp_path)
    audit = made.audit()
    for _ in range(2):
        number = audit.begin(row())
        audit.end(number, row("result", OK, events=3), rows=[row("deliver", OK, events=3)])
    audit.begin(row())
    return made


def test_an_intent_and_its_result_are_read_back_as_they_were(home: Home) -> None:
    """All that an intent says, and to which operation each row belongs."""
    rows = list(read_audit(home.folder))
    assert [(item.kind, item.operation) for item in rows] == [
        ("intent", 1), ("deliver", 1), ("result", 1), ("intent", 3), ("deliver", 3), ("result", 3), ("intent", 5),
    ]  # fmt: skip
    assert replace(rows[0], operation=None) == row()
    assert home.check().sound


def test_what_could_not_be_read_back_is_not_written(home: Home) -> None:
    """A row that the journal's reader would refuse is refused first; the journal stays as it is."""
    before = list(read_audit(home.folder))
    wrongs: tuple[dict[str, Any], ...] = ({"clauses": (1, 2)}, {"source": "x" * (17 << 20)})
    for wrong in wrongs:
        with pytest.raises(EncodingError, match="AUDIT_DAMAGED"):
            home.audit().note([replace(row(), **wrong)])
    assert list(read_audit(home.folder)) == before
    assert home.check().sound


def test_files_are_their_owners_alone(home: Home) -> None:
    """Folders 0700, files 0600, whatever the umask, also where the folder was made before."""
    for path in [home.head, home.folder, *home.folder.rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    home.folder.chmod(0o755)
    assert home.codes() == {"AUDIT_MODE"}
    home.audit().note([row("alarm")])
    assert home.check().sound


def _cut_line(home: Home, number: int) -> None:
    lines = home.lines()
    home.file().write_bytes(b"".join(lines[:number] + lines[number + 1 :]))


def _swap(home: Home) -> None:
    lines = home.lines()
    lines[2], lines[3] = lines[3], lines[2]
    home.file().write_bytes(b"".join(lines))


def _edit(home: Home) -> None:
    home.file().write_bytes(home.file().read_bytes().replace(b'"events":3', b'"events":2', 1))


def _forge(home: Home) -> None:
    """Write the last entry anew, well chained, and sign it with another key."""
    other = Audit(home.folder, home.head, KeySigner(b"b" * 32))
    home.file().write_bytes(b"".join(home.lines()[:-1]))
    home.head.unlink()
    other.begin(row())


def _cut_tail(home: Home) -> None:
    home.file().write_bytes(b"".join(home.lines()[:-2]))


def _cut_with_its_head(home: Home) -> None:
    """Cut the end and remember the entry before it, with the signature and digest that this has."""
    lines = home.lines()[:-2]
    home.file().write_bytes(b"".join(lines))
    last = parse_entry(lines[-1].rstrip())
    head = json.loads(home.head.read_bytes())
    head |= {"n": last.number, "digest": last.digest, "sig": json.loads(last.line)["sig"], "waiting": {}}
    home.head.write_text(json.dumps(head | {"size": home.file().stat().st_size}))


TAMPERED: dict[str, tuple[Callable[[Home], object], set[str]]] = {
    "an entry is removed": (lambda home: _cut_line(home, 3), {"AUDIT_GAP"}),
    "the first entry is removed": (lambda home: _cut_line(home, 0), {"AUDIT_GAP"}),
    "two entries are exchanged": (_swap, {"AUDIT_GAP", "AUDIT_ORDER"}),
    "an entry is changed": (_edit, {"AUDIT_SIGNATURE", "AUDIT_CHAIN"}),
    "an entry is garbled": (
        lambda home: home.file().write_bytes(home.file().read_bytes().replace(b'"entry"', b'"entri"', 1)),
        {"AUDIT_DAMAGED", "AUDIT_GAP"},
    ),
    "the end is cut off": (_cut_tail, {"AUDIT_TRUNCATED"}),
    "the end is cut off, and an entry taken for the head": (_cut_with_its_head, {"AUDIT_HEAD_LOST"}),
    "a whole file is removed": (lambda home: home.file().unlink(), {"AUDIT_TRUNCATED"}),
    "the audit is removed": (lambda home: shutil.rmtree(home.folder), {"AUDIT_TRUNCATED"}),
    "the head is removed": (lambda home: home.head.unlink(), {"AUDIT_HEAD_LOST"}),
    "another key signs": (_forge, {"AUDIT_SIGNATURE", "AUDIT_HEAD_LOST"}),
}


@pytest.mark.threat("T70")
@pytest.mark.parametrize("tamper, codes", TAMPERED.values(), ids=TAMPERED)
def test_what_a_hand_changes_is_found(home: Home, tamper: Callable[[Home], object], codes: set[str]) -> None:
    """By its code, and without writing; what was lost stays to be found after the journal went on."""
    tamper(home)
    assert codes <= home.codes()
    home.audit().begin(row())
    home.audit().note([row("alarm")])
    assert not home.check().sound


def test_a_remembered_head_with_a_flipped_bit_is_another_head_or_none(home: Home) -> None:
    """Whichever bit it is, reading it ends, and what is signed in it is what it was."""
    whole = home.head.read_bytes()
    first = read_head(home.head, SIGNER.public_key)
    assert first is not None
    for bit in range(len(whole) * 8):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        home.head.write_bytes(bytes(data))
        found = read_head(home.head, SIGNER.public_key)
        assert found is None or (found.number, found.digest.lower()) == (first.number, first.digest)


def test_a_cut_end_leaves_its_numbers_unused(home: Home) -> None:
    """The chain goes on from the remembered head, so the gap is in the chain for ever."""
    _cut_tail(home)
    number = home.audit().begin(row())
    assert number == 7  # behind the note of the loss, which stands behind entry 5
    assert {"AUDIT_GAP", "AUDIT_TRUNCATED"} <= home.codes()


@pytest.mark.parametrize("size", [1, 20, 400])
def test_a_torn_line_is_put_aside_and_the_journal_goes_on(home: Home, size: int) -> None:
    """As a crash leaves it: told, kept beside, and nothing that was acknowledged is gone."""
    whole = home.file().read_bytes()
    home.file().write_bytes(whole + b'{"at":"2026-'.ljust(size, b"x"))
    assert home.codes() == {"AUDIT_TORN"}
    home.audit().note([row("notice", "GOES_ON")])
    assert home.told()[-2:] == [("alarm", "AUDIT_TORN"), ("notice", "GOES_ON")]
    assert home.file().read_bytes().startswith(whole)
    assert home.check().sound
    [aside] = home.folder.glob("journal/torn-*")
    assert aside.stat().st_mode & 0o777 == 0o600


def test_a_crash_between_an_entry_and_its_head_is_no_loss(home: Home) -> None:
    """The head may be older than the journal, which continues it."""
    older = home.head.read_bytes()
    home.audit().note([row("notice", "ONE")])
    home.head.write_bytes(older)
    home.audit().note([row("notice", "TWO")])
    assert home.check().sound
    assert home.told()[-2:] == [("notice", "ONE"), ("notice", "TWO")]


def test_the_first_entry_may_be_torn_too(tmp_path: Path) -> None:
    """A journal of nothing but a piece begins anew."""
    home = Home(tmp_path)
    home.audit().note([row("notice", "ONE")])
    home.file().write_bytes(home.file().read_bytes()[:50])
    home.head.unlink()
    home.audit().note([row("notice", "TWO")])
    assert home.told() == [("alarm", "AUDIT_TORN"), ("notice", "TWO")]


def test_an_intent_whose_process_is_gone_is_unfinished(tmp_path: Path) -> None:
    """Shown at once, and written down by whoever begins next; one that runs is left alone."""
    home = Home(tmp_path)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        gone = home.audit().begin(row(), process=process_name(other.pid))
        assert [item.code for item in read_waiting(home.folder, at=AT)] == ["RUNNING"]
        other.kill()
    assert [(item.code, item.operation) for item in read_waiting(home.folder, at=AT)] == [("UNFINISHED", gone)]
    assert home.check().unfinished == [gone]
    mine = home.audit().begin(row())
    assert list(read_audit(home.folder))[1].operation == gone
    assert home.told() == [("intent", "READ"), ("result", "UNFINISHED"), ("intent", "READ")]
    assert [item.operation for item in read_waiting(home.folder, at=AT)] == [mine]


def test_an_operation_ends_when_all_its_parts_did(tmp_path: Path) -> None:
    """A part that reports twice counts once."""
    home = Home(tmp_path)
    number = home.audit().begin(row(), parts=3)
    for part in (0, 2, 2):
        home.audit().end(number, row("result", OK), part=part)
    assert list(home.audit().waiting()) == [number]
    home.audit().end(number, row("result", OK), part=1)
    assert home.audit().waiting() == {}


def test_a_process_of_which_nothing_is_known_is_believed_for_a_day(tmp_path: Path) -> None:
    """Another machine's process may run; not for ever."""
    home = Home(tmp_path)
    home.audit().begin(row(), process="elsewhere b s 1 2")
    assert [item.code for item in read_waiting(home.folder, at=AT + timedelta(hours=23))] == ["RUNNING"]
    assert [item.code for item in read_waiting(home.folder, at=AT + timedelta(hours=25))] == ["UNFINISHED"]


def test_those_that_wait_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers that leave parts unread do not make the head grow without end."""
    monkeypatch.setattr(journal, "_MAX_WAITING", 3)
    home = Home(tmp_path)
    numbers = [home.audit().begin(row()) for _ in range(6)]
    assert len(home.audit().waiting()) <= 4
    assert numbers[-1] in home.audit().waiting()


def test_entries_go_to_a_new_file_and_the_chain_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Removing one in the middle is found."""
    monkeypatch.setattr(journal, "_MAX_FILE", 2000)
    home = Home(tmp_path)
    for number in range(12):
        home.audit().note([row("notice", f"N{number}", at=AT + timedelta(days=number))])
    files = sorted(home.folder.glob("journal/*.jsonl"))
    assert len(files) > 2
    assert home.check().sound
    since = list(read_audit(home.folder, since=AT + timedelta(days=9)))
    assert [item.code for item in since] == ["N9", "N10", "N11"]
    files[1].unlink()
    assert home.codes() == {"AUDIT_GAP"}


def test_many_rows_are_several_entries_of_one_operation(tmp_path: Path) -> None:
    """No line grows without bounds."""
    home = Home(tmp_path)
    number = home.audit().begin(row())
    home.audit().end(number, row("result", OK), rows=[row("deliver", OK)] * 450)
    assert len(home.lines()) == 5
    assert {item.operation for item in read_audit(home.folder)} == {number}
    assert home.audit().waiting() == {}


def test_processes_and_threads_take_turns(tmp_path: Path) -> None:
    """Eight at once: every entry is there once, and the chain is whole."""
    home = Home(tmp_path)

    def work() -> None:
        for _ in range(10):
            audit = home.audit()
            audit.end(audit.begin(row()), row("result", OK))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = home.check()
    assert (found.sound, found.entries, found.unfinished, found.running) == (True, 161, [], [])


KILLED = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from test_audit import Home, row
from maia.log import OK
home = Home(Path({home!r}))
while True:
    number = home.audit().begin(row())
    print(number, flush=True)
    home.audit().end(number, row("result", OK, events=1))
"""


@pytest.mark.fault("F01")
@pytest.mark.parametrize("turns", range(5))
def test_a_process_that_is_killed_loses_no_intent(tmp_path: Path, turns: int) -> None:
    """Whatever was acknowledged is there, the chain is whole, and at most the last operation has no result."""
    home = Home(tmp_path)
    code = KILLED.format(path=[str(Path(__file__).parent), *sys.path], home=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        seen = [int(process.stdout.readline()) for _ in range(10 + 3 * turns)]
        process.send_signal(signal.SIGKILL)
    home.audit().settle(at=AT)
    assert home.check().sound
    rows = list(read_audit(home.folder))
    assert set(seen) <= {item.operation for item in rows if item.kind == "intent"}
    ended = {item.operation: item.code for item in rows if item.kind == "result"}
    assert all(ended[number] == OK for number in seen[:-1])
    assert set(ended) == {item.operation for item in rows if item.kind == "intent"}
    assert list(read_waiting(home.folder, at=AT)) == []


def test_what_cannot_be_written_is_not_done(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: the error says so, and what was half written does not count."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    before = home.file().read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UnavailableError) as refused:
        home.audit().begin(row())
    assert refused.value.code == "AUDIT_UNAVAILABLE"
    monkeypatch.undo()
    assert home.file().read_bytes() == before
    home.audit().begin(row())
    assert home.check().sound


def _earlier(home: Home) -> Path:
    """Write a file as an audit without a journal did."""
    day = home.folder / f"date={AT.date().isoformat()}"
    day.mkdir(parents=True, mode=0o755)
    names = EARLIER_SCHEMA.names
    old = [{name: getattr(row("deliver", OK, events=4), name) for name in names}]
    pq.write_table(pa.Table.from_pylist(old, schema=EARLIER_SCHEMA), day / "0a.parquet")
    return day / "0a.parquet"


def test_a_former_audit_is_read_closed_to_others_and_watched(tmp_path: Path) -> None:
    """Its rows come first; what becomes of its files after the journal began is found."""
    home = Home(tmp_path)
    path = _earlier(home)
    assert [item.events for item in read_audit(home.folder)] == [4]
    home.audit().begin(row())
    assert home.told() == [("deliver", OK), ("intent", "READ")]
    assert path.stat().st_mode & 0o777 == 0o600
    assert (home.check().sound, home.check().earlier) == (True, 1)
    path.write_bytes(path.read_bytes() + b" ")
    assert home.codes() == {"AUDIT_EARLIER"}
    path.unlink()
    assert home.codes() == {"AUDIT_EARLIER"}


def test_a_newer_format_is_refused_by_name_and_not_touched(home: Home) -> None:
    """It is not taken for damage."""
    value = json.loads(home.lines()[-1])
    newer = json.dumps({**value, "v": 3}).encode() + b"\n"
    before = home.file().read_bytes() + newer
    home.file().write_bytes(before)
    with pytest.raises(UnavailableError) as refused:
        home.audit().begin(row())
    assert refused.value.code == "FORMAT_NEWER"
    assert home.file().read_bytes() == before
    assert "FORMAT_NEWER" in home.codes()


@given(st.binary(max_size=200))
def test_no_line_breaks_the_parser(line: bytes) -> None:
    """Whatever stands there is an entry, or refused with a code."""
    with pytest.raises(EncodingError):
        parse_entry(line)


@given(st.integers(0, 4000), st.integers(1, 255))
def test_one_changed_octet_of_an_entry_never_verifies(place: int, flip: int) -> None:
    """By shape, or by signature."""
    entry = journal.make_entry(journal.Draft(kind="intent", at=AT, rows=(row(),)), 3, "ab" * 32, SIGNER)
    line = bytearray(entry.line)
    line[place % len(line)] ^= flip
    try:
        found = parse_entry(bytes(line))
    except (EncodingError, UnavailableError):
        return
    assert not found.check(SIGNER.public_key)
