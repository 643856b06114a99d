"""What the coalition does to the shared log: its own lane, in which it commits what it likes, and everybody else's files.

The vandal remembers what it destroyed, so that a sequence can tell loss from waiting: destroyed objects come back by
`restore`, as from a backup, and owners assert what is theirs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from moves import UIDS, Row
from stage import PEOPLE, Stage, at, definition, table

from maia.authority import type_right
from maia.encoding import encode, parse_canonical
from maia.encryption import EpochId, KeyGroupId, Keyring, Parcel
from maia.errors import MaiaError
from maia.events import batch_to_transit
from maia.kernel import milliseconds, parcel_row, seal_batch
from maia.log import Commit, LogFile
from maia.log.commits import write_commit
from maia.log.lane_objects import START, LaneHead, LaneId, Place, parse_record, sign_head, sign_record
from maia.log.segments import PartitionWriter
from maia.principals import KeySigner, Kind, PublicKey
from maia.testing import grant

HARM = "harm"
DEAF = "deaf"
HARMFUL = {
    "no-record": HARM, "no-segment": HARM, "no-evidence": HARM, "flip-record": HARM, "flip-segment": HARM,
    "swap-segments": HARM, "cut-segment": HARM, "directory": HARM, "old-notice": DEAF, "no-notice": DEAF,
}  # fmt: skip
"""What each way to tamper can do: keep honest events waiting, or lists from being heard. All others do nothing at all."""
JUNK = (b"", b"junk", b"\x00" * 4096, b"(11:lane-record1:1)", b"PAR1" * 300)


@dataclass(frozen=True)
class Own:
    """One event of the coalition's own lane, or the record that committed it.

    Attributes:
        row: As it was sealed.
        at: When.
        stamp: What its stamp says, in milliseconds.
        place: Of the record that committed it.
        before: The places of the records that this one continues.
        floor: The stamp of the record before.
    """

    row: Row
    at: int
    stamp: int
    place: Place
    before: frozenset[Place]
    floor: int


class Vandal:
    """The coalition's hands in the log."""

    def __init__(self, stage: Stage) -> None:
        """Work on the log of a stage."""
        self._stage = stage
        self._taken: dict[Path, bytes] = {}
        self._put: list[Path] = []
        self._old: dict[Path, list[bytes]] = {}
        self._ends: list[Own] = []
        self.sealed: dict[str, list[Own]] = {}

    # -- files of others

    def tamper(self, how: str, target: int) -> str:
        """Do one thing to the log; tell what it can do to others."""
        lane, notices = self._folder("sb"), self._notices()
        records = sorted(lane.glob("*.record"))
        segments = sorted(lane.glob("date=*/*.parquet"))
        following = lane / f"{len(records):012d}.record"
        match how:
            case "junk-record":
                self._write(following, JUNK[target % len(JUNK)])
            case "junk-head":
                self._write(lane / "head", JUNK[target % len(JUNK)])
            case "old-head":
                self._write_old(lane / "head", target)
            case "foreign-record":
                self._write(following, self._foreign(records, target))
            case "replayed-record" if records:
                self._write(following, _bytes(records[target % len(records)]))
            case "far-record" if records:
                number = (999_999_999_999, len(records) + 2)[target % 2]
                self._write(lane / f"{number:012d}.record", _bytes(records[target % len(records)]))
            case "stranger-lane":
                for name in ("head", f"{0:012d}.record", f"{1:012d}.record", "date=2026-01-01/a.parquet"):
                    self._write(self._folder("g") / name, JUNK[target % len(JUNK)])
            case "no-head":
                self._take(lane / "head")
            case "fifo" if not os.path.lexists(following):
                lane.mkdir(parents=True, exist_ok=True)
                os.mkfifo(following)
                self._put.append(following)
            case "endless" if not os.path.lexists(following):
                lane.mkdir(parents=True, exist_ok=True)
                following.symlink_to("/dev/zero")
                self._put.append(following)
            case "junk-notice":
                self._write(notices / f"{len(list(notices.glob('*.record'))):012d}.record", JUNK[target % len(JUNK)])
            case _:
                return self._destroy(how, target, records, segments)
        return ""

    def _destroy(self, how: str, target: int, records: list[Path], segments: list[Path]) -> str:
        notices = sorted(self._notices().glob("*.record"))
        evidence = sorted((self._stage.log / "_evidence").glob("*"))
        match how:
            case "no-record" if records:
                self._take(records[target % len(records)])
            case "flip-record" if records:
                self._flip(records[target % len(records)], target)
            case "no-segment" if segments:
                self._take(segments[target % len(segments)])
            case "flip-segment" if segments:
                self._flip(segments[target % len(segments)], target * 37)
            case "cut-segment" if segments:
                path = segments[target % len(segments)]
                self._write(path, _bytes(path)[: -1 - target])
            case "swap-segments" if len(segments) > 1:
                one, two = segments[target % len(segments)], segments[(target + 1) % len(segments)]
                first, second = _bytes(one), _bytes(two)
                self._write(one, second)
                self._write(two, first)
            case "no-evidence" if evidence:
                self._take(evidence[target % len(evidence)])
            case "directory" if segments:
                path = (segments + records)[target % len(segments + records)]
                self._take(path)
                path.mkdir()
                self._put.append(path)
            case "no-notice" if notices:
                for path in (notices[-1], *((self._notices() / "head",) if target % 2 else ())):
                    self._take(path)
            case "old-notice" if notices:
                self._write(notices[-1], _bytes(notices[target % len(notices)]))
                self._write_old(self._notices() / "head", target)
            case _:
                return ""
        return HARMFUL[how]

    def watch(self) -> None:
        """Keep copies of the heads, to put them back when they are old."""
        for path in (self._folder("sb") / "head", self._notices() / "head"):
            with suppress(OSError):
                self._old.setdefault(path, []).append(path.read_bytes())

    def restore(self) -> None:
        """Let what was destroyed come back, and remove what stands in its place."""
        for path in self._put:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif os.path.lexists(path) and (path.is_symlink() or path.is_fifo()):
                path.unlink()
        for path, data in self._taken.items():
            path.write_bytes(data)
        self._put.clear()
        self._taken.clear()

    def _take(self, path: Path) -> None:
        if path.is_file() and not path.is_symlink():
            self._taken.setdefault(path, path.read_bytes())
            path.unlink()

    def _write(self, path: Path, data: bytes) -> None:
        if os.path.lexists(path) and (path.is_dir() or path.is_fifo() or path.is_symlink()):
            return
        if path.is_file():
            self._taken.setdefault(path, path.read_bytes())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def _write_old(self, path: Path, target: int) -> None:
        kept = self._old.get(path, [])
        if kept:
            self._write(path, kept[target % len(kept)])

    def _flip(self, path: Path, target: int) -> None:
        data = bytearray(_bytes(path))
        if data:
            data[target % len(data)] ^= 1 << target % 8
            self._write(path, bytes(data))

    def _folder(self, origin: str) -> Path:
        type_id = self._stage.fixed.event_type.type_id.hex()
        return self._stage.log / f"type={type_id}" / f"origin={PEOPLE[origin].public_key.key_id.hex()}"

    def _notices(self) -> Path:
        owner = PEOPLE["o"].public_key.key_id
        return self._stage.log / "_lanes" / "statement" / hashlib.sha256(owner).hexdigest() / f"origin={owner.hex()}"

    # -- the own lane

    def commit(self, how: str, rows: tuple[Row, ...]) -> None:
        """Commit to the lane of ``xb``, in one of the ways of a broker that keeps to nothing."""
        stage, now = self._stage, milliseconds(at(self._stage.now))
        evidence = stage.s.log.put_evidence(stage.evidence)
        if how == "fork" and self._ends:
            self._ends.pop()
        last = self._ends[-1] if self._ends else None
        place, floor = (START, -1) if last is None else (last.place, last.stamp)
        stamp = max(now + 3_600_000 if how == "ahead" else now, floor + 1)
        if how == "borrowed":
            known = sorted((stage.log / "_evidence").glob("*"))
            evidence = bytes.fromhex(known[(rows[0][0] or 0) % len(known)].name)
        sealed = floor - 500 if how == "backdate" and last is not None else stamp
        parcel = None if how == "replay" else self._parcel(how, rows, evidence, sealed)
        file = self._replayed() if how == "replay" else None if parcel is None else self._segment(how, parcel)
        if file is None:
            return
        lane = LaneId(kind="events", owner=PEOPLE["xb"].public_key.key_id, topic=stage.fixed.event_type.type_id.hex())
        made = Commit(0, f"x{len(self._ends)}", lane.topic, "", evidence.hex(), (file,))
        record = sign_record(
            lane, place, stamp=max(stamp, file.last_stamp), body=write_commit(made, lane.folder), signer=PEOPLE["xb"]
        )  # fmt: skip
        before = frozenset() if last is None else last.before | {last.place}
        own = Own((), stage.now, record.stamp, record.place, before, floor)
        self._ends.append(own)
        for event, row in () if parcel is None else stage.contents(parcel):
            found = [replace(own, row=row, stamp=sealed)] * (2 if how == "twice" else 1)
            self.sealed.setdefault(event, []).extend(found)
        folder = self._folder("xb")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{record.number:012d}.record").write_bytes(record.raw)
        head = LaneHead(place=record.place, asserted=now, floor=START, due=now)
        (folder / "head").write_bytes(sign_head(lane, head, PEOPLE["xb"]))

    def _parcel(self, how: str, rows: tuple[Row, ...], evidence: bytes, stamp: int) -> Parcel | None:
        """Seal rows with the keys that the coalition has; in many ways with all, as if it had held them once."""
        stage, owner = self._stage, "p" if how == "other-type" else "o"
        ring = stage.ring if how == "own" else stage.fixed.ring
        if owner == "p":
            ring = Keyring()
            for uid in UIDS:
                ring.add(KeyGroupId(definition("p").type_id, uid.encode()), EpochId(0), uid.encode() * 32)
            whole = grant(PEOPLE["p"], PEOPLE["xb"], type_right(PEOPLE["p"].public_key, "*"))
            evidence = stage.s.log.put_evidence((whole.raw,))
        sealing = stage.sealing(evidence, owner)
        held = [bool(ring.epochs(sealing.group(uid.encode()))) for uid in UIDS]
        if not any(held):
            return None
        rows = tuple(tuple(v if has else None for v, has in zip(row, held, strict=True)) for row in rows)
        batch = batch_to_transit(definition(owner), table(definition(owner), rows))
        return seal_batch(
            batch, sealing, PEOPLE["xb"], ring, stamp=stamp, parcel_id=os.urandom(16), event_base=os.urandom(16)
        )  # fmt: skip

    def _segment(self, how: str, parcel: Parcel) -> LogFile | None:
        folder = self._folder("xb").relative_to(self._stage.log)
        writer = PartitionWriter(
            self._stage.log, f"{folder}/date=2026-01-01/{os.urandom(12).hex()}-00000-{os.urandom(8).hex()}.parquet"
        )
        for _ in range(2 if how == "twice" else 1):
            writer.add(parcel_row(parcel))
        return writer.close()

    def _replayed(self) -> LogFile | None:
        """Copy a segment of the honest publisher into the own lane, with all that its commit says."""
        stage = self._stage
        found = [file for commit in stage.lanes_commits() for file in commit.files]
        if not found:
            return None
        file = found[-1]
        source, target = stage.log / file.path, self._folder("xb") / "date=2026-01-01" / Path(file.path).name
        if not source.is_file():
            return None
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        path = str(target.relative_to(stage.log))
        data = target.read_bytes()
        return LogFile(
            path, len(data), hashlib.sha256(data).hexdigest(), file.parcels, file.events, file.first_stamp,
            file.last_stamp, file.bases,
        )  # fmt: skip

    def _foreign(self, records: list[Path], target: int) -> bytes:
        """A record that would continue the honest lane: under its owner's name with a wrong signature, or under ours."""
        owner = PEOPLE["sb"].public_key
        lane = LaneId(kind="events", owner=owner.key_id, topic=self._folder("sb").parent.name.removeprefix("type="))
        place = START
        if records:
            with suppress(MaiaError):
                place = parse_record(lane, len(records) - 1, _bytes(records[-1])).place
        body = write_commit(Commit(0, "forged", lane.topic, "", "00" * 32, ()), lane.folder)
        as_theirs = _Pretending(PEOPLE["xb"], owner)
        raw = sign_record(lane, place, stamp=milliseconds(at(self._stage.now)), body=body, signer=as_theirs).raw
        if target % 2:
            return raw
        *front, _, content, signature = parse_canonical(raw)
        return encode((*front, PEOPLE["xb"].public_key.raw, content, signature))


@dataclass(frozen=True)
class _Pretending:
    """Signs with one key and says that it is another."""

    signer: KeySigner
    public_key: PublicKey

    def sign(self, kind: Kind, body: bytes) -> bytes:
        return self.signer.sign(kind, body)


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else b""
