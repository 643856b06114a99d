"""The coalition's own broker: a lane in which it commits what it likes, with the keys that it has or once had."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from moves import UIDS, Row
from stage import PEOPLE, Stage, at, definition, table

from maia.authority import type_right
from maia.encryption import EpochId, KeyGroupId, Keyring, Parcel
from maia.events import batch_to_transit
from maia.kernel import milliseconds, seal_batch
from maia.log import Commit, DirectoryStore, LogFile
from maia.log.commits import write_commit
from maia.log.lane_objects import START, LaneHead, LaneId, Place, sign_head, sign_record
from maia.log.segment_writer import PartitionWriter
from maia.testing import grant


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


class Rogue:
    """The broker ``xb``.

    Attributes:
        sealed: What it sealed, by the names that readers give its events; several when it sealed a parcel twice.
    """

    def __init__(self, stage: Stage) -> None:
        """Work on the log of a stage."""
        self._stage = stage
        self._ends: list[Own] = []
        self.sealed: dict[str, list[Own]] = {}

    def commit(self, how: str, rows: tuple[Row, ...]) -> None:
        """Commit to the lane of ``xb``, in one of the ways of a broker that keeps to nothing."""
        if how == "fork" and self._ends:
            self._ends.pop()  # another record under the same number, and one more that continues it
            self._commit("beyond", rows)
        self._commit(how, rows)

    def _commit(self, how: str, rows: tuple[Row, ...]) -> None:
        stage, now = self._stage, milliseconds(at(self._stage.now))
        evidence = stage.s.log.put_evidence(stage.evidence)
        last = self._ends[-1] if self._ends else None
        place, floor = (START, -1) if last is None else (last.place, last.stamp)
        stamp = max(now + 3_600_000 if how == "ahead" else now, floor + 1)
        if how == "borrowed":
            known = sorted((stage.log / "_evidence").glob("*"))
            evidence = bytes.fromhex(known[(rows[0][0] or 0) % len(known)].name)
        sealed = floor - 500 if how in ("backdate", "lie") and last is not None else stamp
        parcel = None if how == "replay" else self._parcel(how, rows, evidence, sealed)
        file = self._replayed() if how == "replay" else None if parcel is None else self._segment(how, parcel)
        if file is None:
            return
        if how == "lie":  # the commit says other stamps than its parcels
            file = replace(file, first_stamp=stamp, last_stamp=stamp)
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
        folder = self._stage.lane_folder("xb")
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
        folder = self._stage.lane_folder("xb").relative_to(self._stage.log)
        name = f"{folder}/date=2026-01-01/{os.urandom(12).hex()}-00000-{os.urandom(8).hex()}.parquet"
        with PartitionWriter(DirectoryStore(self._stage.log), name) as writer:
            for _ in range(2 if how == "twice" else 1):
                writer.add(parcel)
            return writer.close()

    def _replayed(self) -> LogFile | None:
        """Copy a segment of the honest publisher into the own lane, with all that its commit says."""
        stage = self._stage
        found = [file for commit in stage.lanes_commits() for file in commit.files]
        if not found:
            return None
        file = found[-1]
        source, target = stage.log / file.path, self._stage.lane_folder("xb") / "date=2026-01-01" / Path(file.path).name
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
