"""Notices are numbered without gaps, said once, never changed, and damage is seen."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from maia.errors import EncodingError, MaiaError, UnavailableError, UsageError
from maia.log import NoticeKind, NoticeLog, notices

TOPIC = b"a key group"
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def log(tmp_path: Path) -> NoticeLog:
    """A log with three notices."""
    made = NoticeLog(tmp_path / "log")
    for body in (b"one", b"two", b"three"):
        made.append(NoticeKind.REKEY, TOPIC, body)
    return made


def files(log: NoticeLog, suffix: str = "notice") -> list[Path]:
    """List the files of all topics."""
    return sorted(log.path.glob(f"_notices/*/*/*.{suffix}"))


def test_notices_are_read_in_the_order_they_were_said(log: NoticeLog) -> None:
    """Numbers count from 0; a reader goes on after the last it has read, so many at a time."""
    assert [notice.body for notice in log.read(NoticeKind.REKEY, TOPIC)] == [b"one", b"two", b"three"]
    assert [notice.number for notice in log.read(NoticeKind.REKEY, TOPIC, after=0)] == [1, 2]
    assert [notice.number for notice in log.read(NoticeKind.REKEY, TOPIC, limit=2)] == [0, 1]
    assert log.read(NoticeKind.REKEY, TOPIC, after=2) == ()
    assert [log.has(NoticeKind.REKEY, TOPIC, number) for number in (0, 2, 3)] == [True, True, False]
    newest = log.latest(NoticeKind.REKEY, TOPIC)
    assert newest is not None
    assert (newest.number, newest.body, newest.topic, newest.kind) == (2, b"three", TOPIC, NoticeKind.REKEY)


def test_saying_the_newest_again_changes_nothing(log: NoticeLog) -> None:
    """A writer that does not know whether it was heard says it again; older things may be said again."""
    assert log.append(NoticeKind.REKEY, TOPIC, b"three") == 2
    assert len(files(log)) == 3
    assert log.append(NoticeKind.REKEY, TOPIC, b"one") == 3


def test_topics_and_kinds_do_not_mix(log: NoticeLog) -> None:
    """Each kind has its own topics, and each topic its own numbers."""
    assert log.append(NoticeKind.REKEY, b"another group", b"first") == 0
    assert log.append(NoticeKind.STATEMENT, TOPIC, b"a statement") == 0
    assert [notice.body for notice in log.read(NoticeKind.REKEY, b"another group")] == [b"first"]
    assert [notice.body for notice in log.read(NoticeKind.STATEMENT, TOPIC)] == [b"a statement"]
    assert len(log.read(NoticeKind.REKEY, TOPIC)) == 3
    assert log.latest(NoticeKind.CERTIFICATE, TOPIC) is None
    assert log.read(NoticeKind.CERTIFICATE, TOPIC) == ()


@pytest.mark.parametrize("topic", [b"../../outside", b"/etc/passwd", bytes(range(256)), b"."])
def test_a_topic_never_becomes_a_path(tmp_path: Path, topic: bytes) -> None:
    """Only hashes name folders."""
    log = NoticeLog(tmp_path / "log")
    log.append(NoticeKind.CERTIFICATE, topic, b"body")
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    (file,) = files(log)
    assert len(file.parent.name) == 64
    assert [notice.body for notice in log.read(NoticeKind.CERTIFICATE, topic)] == [b"body"]


REFUSED = {
    "an empty topic": (b"", b"body"),
    "a topic that is too long": (bytes(notices.MAX_TOPIC + 1), b"body"),
    "a body that is too large": (TOPIC, bytes(33)),
}


@pytest.mark.parametrize(("topic", "body"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_too_large_is_refused(
    log: NoticeLog, topic: bytes, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Topics and bodies are bounded."""
    monkeypatch.setattr(notices, "MAX_BODY", 32)
    with pytest.raises(UsageError, match="NOTICE_SIZE"):
        log.append(NoticeKind.REKEY, topic, body)


def test_topics_are_bounded(log: NoticeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log takes so many topics of a kind; those it has go on."""
    monkeypatch.setattr(notices, "MAX_TOPICS", 1)
    with pytest.raises(UsageError, match="NOTICE_TOPICS"):
        log.append(NoticeKind.REKEY, b"one too many", b"body")
    assert log.append(NoticeKind.REKEY, TOPIC, b"four") == 3


@pytest.mark.parametrize("limit", [0, -1, notices.MAX_READ + 1])
def test_one_call_reads_a_bounded_number(log: NoticeLog, limit: int) -> None:
    """No call reads without a bound."""
    with pytest.raises(UsageError, match="NOTICE_SIZE"):
        log.read(NoticeKind.REKEY, TOPIC, limit=limit)


@pytest.mark.parametrize("position", range(0, 200, 7))
def test_a_flipped_bit_is_seen(log: NoticeLog, position: int) -> None:
    """Wherever a bit flips, the reader stops with a named error."""
    target = files(log)[1]
    data = bytearray(target.read_bytes())
    data[position % len(data)] ^= 4
    target.write_bytes(data)
    with pytest.raises(EncodingError, match="NOTICE_DAMAGED"):
        log.read(NoticeKind.REKEY, TOPIC)


def test_a_cut_a_swap_and_a_missing_notice_are_seen(log: NoticeLog, tmp_path: Path) -> None:
    """A notice cut short, two exchanged, one of another log in its place, one gone: each is named."""
    first, second, third = files(log)
    kept = {path: path.read_bytes() for path in (first, second, third)}
    second.write_bytes(kept[second][:-1])
    with pytest.raises(EncodingError, match="NOTICE_DAMAGED"):
        log.read(NoticeKind.REKEY, TOPIC)
    second.write_bytes(kept[third])
    third.write_bytes(kept[second])
    with pytest.raises(EncodingError, match="NOTICE_DAMAGED"):
        log.read(NoticeKind.REKEY, TOPIC)
    other = NoticeLog(tmp_path / "other")
    for body in (b"eins", b"zwei"):
        other.append(NoticeKind.REKEY, TOPIC, body)
    second.write_bytes(files(other)[1].read_bytes())
    third.write_bytes(kept[third])
    with pytest.raises(EncodingError, match="NOTICE_DAMAGED"):
        log.read(NoticeKind.REKEY, TOPIC)
    second.unlink()
    with pytest.raises(EncodingError, match="NOTICE_MISSING"):
        log.read(NoticeKind.REKEY, TOPIC)
    first.unlink()
    with pytest.raises(EncodingError, match="NOTICE_MISSING"):
        log.read(NoticeKind.REKEY, TOPIC, after=0)


def test_a_notice_of_another_topic_or_kind_is_refused(log: NoticeLog) -> None:
    """A whole file that was put elsewhere does not count there."""
    log.append(NoticeKind.REKEY, b"another", b"first")
    log.append(NoticeKind.STATEMENT, b"another", b"first")
    moved = files(log)[0].read_bytes()
    for target in log.path.glob("_notices/*/*/000000000000.notice"):
        target.write_bytes(moved)
    damaged = 0
    for kind, topic in ((NoticeKind.REKEY, b"another"), (NoticeKind.STATEMENT, b"another")):
        with pytest.raises(EncodingError, match="NOTICE_DAMAGED"):
            log.latest(kind, topic)
        damaged += 1
    assert damaged == 2


def test_a_log_that_went_back_in_time_is_refused(log: NoticeLog) -> None:
    """A reader that has read further than the log goes stands before another log."""
    with pytest.raises(UsageError, match="NOTICES_BEHIND"):
        log.read(NoticeKind.REKEY, TOPIC, after=3)


def test_forgetting_keeps_the_newest_and_its_number(log: NoticeLog) -> None:
    """The oldest go; the reader sees that they went; the next number is new."""
    assert log.forget(NoticeKind.REKEY, TOPIC, before=2) == 2
    assert [notice.number for notice in log.read(NoticeKind.REKEY, TOPIC)] == [2]
    assert log.forget(NoticeKind.REKEY, TOPIC, before=100) == 0
    assert log.append(NoticeKind.REKEY, TOPIC, b"four") == 3
    assert log.forget(NoticeKind.REKEY, TOPIC, before=100) == 1
    assert [notice.number for notice in log.read(NoticeKind.REKEY, TOPIC)] == [3]
    assert len(files(log)) == 1
    assert len(files(log, "floor")) == 1


def test_forgetting_that_was_killed_half_way_is_not_damage(log: NoticeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """What remains below the floor does not count, whichever files a crash left."""
    removed: list[Path] = []

    def remove_one(path: Path) -> None:
        if removed:
            raise KeyboardInterrupt
        removed.append(path)
        path.unlink()

    monkeypatch.setattr(notices, "_remove", remove_one)
    with pytest.raises(KeyboardInterrupt):
        log.forget(NoticeKind.REKEY, TOPIC, before=2)
    monkeypatch.undo()
    assert len(files(log)) == 2
    assert [notice.number for notice in log.read(NoticeKind.REKEY, TOPIC)] == [2]


def test_other_files_are_left_alone(log: NoticeLog) -> None:
    """Parts of killed writers and foreign files are read by nobody; old parts go when something is forgotten."""
    folder = files(log)[0].parent
    names = (".000000000003.notice.abc.part", "README", "12.notice", "000000000009.json")
    for name in names:
        (folder / name).write_bytes(b"?")
    os.utime(folder / names[0], (1, 1))
    assert log.append(NoticeKind.REKEY, TOPIC, b"four") == 3
    assert len(log.read(NoticeKind.REKEY, TOPIC)) == 4
    log.forget(NoticeKind.REKEY, TOPIC, before=1)
    assert [(folder / name).exists() for name in names] == [False, True, True, True]


def test_a_system_that_refuses_is_named(log: NoticeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is Maia's error, and nothing counts that did not."""

    def full(*_: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("maia.log.numbered.os.fsync", full)
    with pytest.raises(UnavailableError, match="no space left"):
        log.append(NoticeKind.REKEY, TOPIC, b"four")
    monkeypatch.undo()
    assert len(log.read(NoticeKind.REKEY, TOPIC)) == 3


def _write(path: str, writer: int, count: int) -> None:
    log = NoticeLog(path)
    for index in range(count):
        log.append(NoticeKind.REKEY, TOPIC, b"%d/%d" % (writer, index))


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    """Three processes write at once: every notice is there once, each writer's in its order."""
    workers = [FORK.Process(target=_write, args=(str(tmp_path), writer, 20)) for writer in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    said = [notice.body for notice in NoticeLog(tmp_path).read(NoticeKind.REKEY, TOPIC)]
    assert len(said) == len(set(said)) == 60
    for writer in range(3):
        own = [body for body in said if body.startswith(b"%d/" % writer)]
        assert own == [b"%d/%d" % (writer, index) for index in range(20)]


def test_a_killed_writer_leaves_whole_notices(tmp_path: Path) -> None:
    """Killed at any moment, a writer leaves a log that reads without damage, and others go on."""
    log = NoticeLog(tmp_path)
    for round_ in range(5):
        worker = FORK.Process(target=_write, args=(str(tmp_path), round_, 100_000))
        worker.start()
        time.sleep(0.05)
        os.kill(worker.pid or 0, signal.SIGKILL)
        worker.join(60)
        said = log.read(NoticeKind.REKEY, TOPIC, limit=notices.MAX_READ)
        assert [notice.number for notice in said] == list(range(len(said)))
    assert log.append(NoticeKind.REKEY, TOPIC, b"still here") == len(said)


def test_reading_while_others_forget_never_shows_a_hole(log: NoticeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is forgotten between listing and reading is passed over, and the rest is whole."""
    listed = log._list
    calls: list[int] = []

    def then_forget(kind: NoticeKind, topic: bytes) -> tuple[int, list[int]]:
        found = listed(kind, topic)
        if not calls:
            calls.append(1)
            NoticeLog(log.path).forget(kind, topic, before=2)
        return found

    monkeypatch.setattr(log, "_list", then_forget)
    assert [notice.number for notice in log.read(NoticeKind.REKEY, TOPIC)] == [2]


def test_damage_raises_only_errors_of_maia(log: NoticeLog) -> None:
    """Whatever bytes stand in a notice's file, the reader gets a `MaiaError`."""
    for data in (b"", b"(", b"()", b"(6:notice)", bytes(1000), b"(6:notice0:0:0:0:0:0:)"):
        files(log)[2].write_bytes(data)
        with pytest.raises(MaiaError):
            log.latest(NoticeKind.REKEY, TOPIC)
