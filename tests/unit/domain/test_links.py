"""Links as files, and rounds over stores: what is parked, what is never copied, and what a file may say."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from maia.domain import Domain, Link, add_link, find_link, link_status, pull_link, read_links, remove_link
from maia.domain.links import rounds
from maia.domain.parked import keep_parked, read_parked
from maia.errors import MalformedError, NotFoundError, UnavailableError, UsageError
from maia.home import Home, HomeConfig
from maia.log import START, DirectoryStore, NoticeKind, NoticeLog, read_audit
from maia.log.commits import Commit, write_commit
from maia.log.lane_objects import LaneId, LaneRecord, sign_record
from maia.principals import KeySigner
from maia.testing import LaneOf

NOW = datetime.now(UTC)
TYPE, OTHER = "ab" * 32, "cd" * 32


@pytest.fixture
def domain(tmp_path: Path) -> Domain:
    """Open a home."""
    return Domain(Home.create(tmp_path / "home", HomeConfig(name="met")))


def lane_of(log: Path, signer: KeySigner, type_id: str = TYPE) -> LaneOf:
    """Write a lane of one commit."""
    lane = LaneOf(log, type_id, signer, log.with_name(f"own-{signer.public_key.key_id.hex()[:8]}-{type_id[:2]}"))
    lane.commit("p", at=NOW)
    lane.assert_end(at=NOW)
    return lane


def test_a_link_is_read_as_it_was_written(domain: Domain) -> None:
    """And there is one of a name."""
    link = Link(name="kent", address="https://kent.example:8474", key="KB", types=(TYPE,), ca='/a "b"')
    add_link(domain.home, link)
    assert read_links(domain.home) == (find_link(domain.home, "kent"),) == (link,)
    with pytest.raises(UsageError, match="LINK_EXISTS"):
        add_link(domain.home, link)
    remove_link(domain.home, "kent", at=NOW)
    assert read_links(domain.home) == ()
    for name in ("kent", "../maia", ""):
        with pytest.raises(NotFoundError, match="NO_LINK"):
            find_link(domain.home, name)


WRONG = {
    "no TOML": b"address = ",
    "no address": b'key = "KB"\n',
    "a setting too many": b'address = "/log"\nport = "1"\n',
    "a number": b"address = 1\n",
    "types that are none": b'address = "/log"\ntypes = ["x"]\n',
    "types that are no list": b'address = "/log"\ntypes = "x"\n',
    "a store with a key": b'address = "/log"\nkey = "KB"\n',
    "no text": b"\xff",
}


@pytest.mark.parametrize("data", WRONG.values(), ids=WRONG.keys())
def test_a_file_that_is_no_link_is_refused(domain: Domain, data: bytes) -> None:
    """By its name, before anything is copied."""
    (domain.path / "links").mkdir()
    (domain.path / "links" / "kent.toml").write_bytes(data)
    with pytest.raises(MalformedError, match=r"LINK_FILE.*kent\.toml"):
        read_links(domain.home)


@pytest.mark.parametrize("name", ["Kent", "a/b", "..", "", "x" * 64])
def test_a_name_that_is_no_file_is_refused(name: str) -> None:
    """A link's name becomes a path."""
    with pytest.raises(UsageError, match="LINK_NAME"):
        Link(name=name, address="/log")


def test_types_are_chosen_and_notices_come_always(domain: Domain, tmp_path: Path) -> None:
    """Rekey messages and lists are needed by whoever reads anything."""
    log, signer = tmp_path / "log", KeySigner.generate()
    for type_id in (TYPE, OTHER):
        lane_of(log, signer, type_id)
    NoticeLog(log, own=tmp_path / "own").say(NoticeKind.STATEMENT, signer, b"topic", b"a list", at=NOW)
    link = Link(name="kent", address=str(log), types=(TYPE,))
    done = pull_link(domain, link, DirectoryStore(log))
    assert (done.lanes, done.records) == (2, 2)
    assert not (domain.home.log_path / f"type={OTHER}").exists()
    assert len(list(domain.home.log_path.glob("_lanes/statement/*/origin=*/*.record"))) == 1
    assert link_status(domain.home, link).lanes == 2


def test_own_lanes_are_never_copied(domain: Domain, tmp_path: Path) -> None:
    """What a neighbour says that we wrote counts for nothing: our own record decides."""
    lane_of(tmp_path / "log", domain.home.broker)
    done = pull_link(domain, Link(name="kent", address="x"), DirectoryStore(tmp_path / "log"))
    assert (done.lanes, done.records) == (0, 0)


def test_a_lane_that_is_hidden_is_taken_back_and_stops_no_other(domain: Domain, tmp_path: Path) -> None:
    """A neighbour that lists a lane no more withholds it; the others go on, and what was parked resumes."""
    log, hidden, other = tmp_path / "log", KeySigner.generate(), KeySigner.generate()
    folder = lane_of(log, hidden).folder
    link = Link(name="kent", address=str(log))
    assert pull_link(domain, link, DirectoryStore(log)).parked == ()
    shutil.move(folder, tmp_path / "hidden")
    lane_of(log, other)
    done = pull_link(domain, link, DirectoryStore(log))
    assert ([item.code for item in done.parked], done.records) == (["LANE_ROLLED_BACK"], 1)
    assert len(link_status(domain.home, link).contrary) == 1
    shutil.move(tmp_path / "hidden", folder)
    assert pull_link(domain, link, DirectoryStore(log)).parked == ()
    assert len(link_status(domain.home, link).contrary) == 1  # what was signed stays signed


def test_a_round_that_is_stopped_keeps_what_it_has(domain: Domain, tmp_path: Path) -> None:
    """Ctrl-C waits for the turn of one lane."""
    log = tmp_path / "log"
    for _ in range(3):
        lane_of(log, KeySigner.generate())
    asked: list[int] = []
    done = pull_link(
        domain, Link(name="kent", address="x"), DirectoryStore(log), stop=lambda: len(asked) == 2,
        tell=lambda done: asked.append(done.records),
    )  # fmt: skip
    assert (done.stopped, done.records, asked) == (True, 2, [1, 2])


class Endless(DirectoryStore):
    """A served log, and in it a lane to which its owner adds a record whenever somebody asks for one."""

    def __init__(self, path: Path, signer: KeySigner) -> None:
        super().__init__(path)
        self.signer, self.lane = signer, LaneId(kind="events", owner=signer.public_key.key_id, topic=TYPE)
        self.made: list[LaneRecord] = []
        (path / self.lane.folder).mkdir(parents=True)

    def get(self, name: str, *, limit: int) -> bytes:
        """Give a record of the lane, or what lies there."""
        if not name.startswith(self.lane.folder) or not name.endswith(".record"):
            return super().get(name, limit=limit)
        number = int(name[-19:-7])
        assert number < 2000, "it is asked for ever"
        while len(self.made) <= number:
            next_one = len(self.made)
            commit = Commit(next_one, "p", TYPE, self.lane.owner.hex(), "00" * 32, (), stamp=10 + next_one)
            body, before = write_commit(commit, self.lane.folder), self.made[-1].place if self.made else START
            self.made.append(sign_record(self.lane, before, stamp=10 + next_one, body=body, signer=self.signer))
        return self.made[number].raw


def alarms(domain: Domain) -> list[str]:
    """List what the audit has of alarms."""
    return [row.code for row in read_audit(domain.home.audit_path) if row.kind == "alarm"]


def test_a_lane_without_an_end_ends_the_round_and_hides_no_alarm(
    domain: Domain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each lane has its turn, what waits is told, and the next round goes on."""
    monkeypatch.setattr(rounds, "_ROUND_RECORDS", 300)
    first, second = sorted((KeySigner.generate() for _ in range(2)), key=lambda key: key.public_key.key_id)
    source, link = Endless(tmp_path / "log", first), Link(name="evil", address="x")
    gap = lane_of(tmp_path / "log", second)
    gap.commit("q", at=datetime.now(UTC))
    gap.assert_end(at=datetime.now(UTC))
    next(gap.folder.glob("*0.record")).unlink()
    told: list[list[str]] = []
    done = pull_link(domain, link, source, tell=lambda _done: told.append(alarms(domain)))
    assert (done.more, done.records, [item.code for item in done.parked]) == (True, 512, ["LANE_GAP"])
    assert told == [[], [], ["LANE_GAP"]]  # after the first turn of each
    assert link_status(domain.home, link).last["records"] == 512
    assert pull_link(domain, link, source).records == 512
    assert alarms(domain) == ["LANE_GAP"]  # it goes on waiting


def test_what_waits_is_told_when_the_served_log_falls_silent(
    domain: Domain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever cuts every round short hides nothing by it, and what was not looked at waits as before."""
    log, link = tmp_path / "log", Link(name="kent", address="x")
    first, second = sorted((KeySigner.generate() for _ in range(2)), key=lambda key: key.public_key.key_id)
    lanes = [lane_of(log, first), lane_of(log, second)]
    pull_link(domain, link, DirectoryStore(log))
    for lane in lanes:
        shutil.move(lane.folder, tmp_path / lane.folder.name)
    assert len(pull_link(domain, link, DirectoryStore(log)).parked) == 2
    shutil.move(tmp_path / lanes[0].folder.name, lanes[0].folder)

    class Silent(DirectoryStore):
        def get(self, name: str, *, limit: int) -> bytes:
            if second.public_key.key_id.hex() in name:
                raise UnavailableError("silent", code="PEER_UNAVAILABLE")
            return super().get(name, limit=limit)

    with pytest.raises(UnavailableError):
        pull_link(domain, link, Silent(log))
    assert [item.lane[-64:] for item in read_parked(domain.path)] == [second.public_key.key_id.hex()]


def test_a_file_of_what_waits_can_be_read_back(domain: Domain, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many lanes wait: it says that there are more, and tells nothing twice."""
    monkeypatch.setattr("maia.domain.parked._MOST", 3)
    waiting = [(f"{TYPE}/{number:064x}", "LANE_GAP") for number in range(9)]
    for _ in range(2):
        kept = keep_parked(domain.home, "link kent", waiting, at=NOW)
        assert [item.code for item in kept] == ["LANE_GAP", "LANE_GAP", "LIMIT_EXCEEDED"]
    assert len(read_parked(domain.path)) == len(alarms(domain)) == 3
