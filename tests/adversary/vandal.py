"""What the coalition does to the files of others in the shared log.

The vandal remembers what it destroyed, so that a sequence can tell loss from waiting: destroyed objects come back by
`restore`, as from a backup, and owners assert what is theirs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stage import PEOPLE, Stage, at

from maia.encoding import encode, parse_canonical
from maia.errors import MaiaError
from maia.kernel import milliseconds
from maia.log import Commit
from maia.log.commits import write_commit
from maia.log.lane_objects import START, LaneId, parse_record, sign_record
from maia.principals import KeySigner, Kind, PublicKey

HARM = "harm"
DEAF = "deaf"
MUTE = "mute"
HARMFUL = {
    "no-record": HARM, "no-segment": HARM, "no-evidence": HARM, "flip-record": HARM, "flip-segment": HARM,
    "swap-segments": HARM, "cut-segment": HARM, "directory": HARM, "old-notice": DEAF, "no-notice": DEAF,
    "mute-notice": MUTE,
}  # fmt: skip
"""What each way to tamper can do: keep honest events waiting, lists from being heard, or all lists from now on."""
JUNK = (b"", b"junk", b"\x00" * 4096, b"(11:lane-record1:1)", b"PAR1" * 300)


class Vandal:
    """The coalition's hands in the log."""

    def __init__(self, stage: Stage) -> None:
        """Work on the log of a stage."""
        self._stage = stage
        self._taken: dict[Path, bytes] = {}
        self._put: list[Path] = []
        self.touched = False
        self._old: dict[Path, list[bytes]] = {}
        self._heard: tuple[frozenset[Path], bytes] | None = None

    def tamper(self, how: str, target: int) -> str:
        """Do one thing to the log; tell what it can do to others."""
        self.touched = True
        lane = self._stage.lane_folder("sb")
        records = sorted(lane.glob("*.record"))
        if how not in HARMFUL:
            self._add(how, target, lane, records)
            return ""
        segments = sorted(path for path in lane.glob("date=*/*") if path.suffix in (".parquet", ".segments"))
        return HARMFUL[how] if self._destroy(how, target, records, segments) else ""

    def _add(self, how: str, target: int, lane: Path, records: list[Path]) -> None:
        """Put something beside what is there, or in place of a head, which only speeds readers up."""
        junk, following = JUNK[target % len(JUNK)], following_record(lane)
        match how:
            case "junk-record":
                self._write(following, junk)
            case "junk-head":
                self._write(lane / "head", junk)
            case "old-head":
                self._write_old(lane / "head", target)
            case "no-head":
                self._take(lane / "head")
            case "foreign-record":
                self._write(following, self._foreign(records, target))
            case "replayed-record" if records:
                self._write(following, _bytes(records[target % len(records)]))
            case "far-record" if records:
                number = (999_999_999_999, len(records) + 2)[target % 2]
                self._write(lane / f"{number:012d}.record", _bytes(records[target % len(records)]))
            case "stranger-lane":
                for name in ("head", f"{0:012d}.record", f"{1:012d}.record", "date=2026-01-01/a.parquet"):
                    self._write(self._stage.lane_folder("g") / name, junk)
            case "junk-notice":
                self._write(following_record(self._notices()), junk)
            case "fifo" | "endless":
                self._block(following, how)

    def _block(self, path: Path, how: str) -> None:
        """Put something that never ends where the next record will be."""
        if not os.path.lexists(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if how == "fifo":
                os.mkfifo(path)
            else:
                path.symlink_to("/dev/zero")
            self._put.append(path)

    def _destroy(self, how: str, target: int, records: list[Path], segments: list[Path]) -> bool:
        """Take away or alter what somebody honest wrote; tell whether there was anything."""
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
                with suppress(FileExistsError):
                    path.mkdir()
                    self._put.append(path)
            case "no-notice" | "old-notice" | "mute-notice" if notices:
                self._silence(how, target, notices)
            case _:
                return False
        return True

    def _silence(self, how: str, target: int, notices: list[Path]) -> None:
        """Keep readers from what the owner says: the newest word, or all from now on."""
        head = self._notices() / "head"
        match how:
            case "no-notice":
                for path in (notices[-1], *((head,) if target % 2 else ())):
                    self._take(path)
            case "old-notice":
                self._write(notices[-1], _bytes(notices[target % len(notices)]))
                self._write_old(head, target)
            case _:
                self._heard = self._heard or (frozenset(notices), _bytes(head))

    def watch(self) -> None:
        """Take away what a muted owner said since; keep copies of the heads, to put them back when they are old."""
        if self._heard is not None:
            heard, head = self._heard
            for path in set(self._notices().glob("*.record")) - heard:
                self._take(path)
            self._write(self._notices() / "head", head)
        for path in (self._stage.lane_folder("sb") / "head", self._notices() / "head"):
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
        self._heard = None

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

    def _notices(self) -> Path:
        owner = PEOPLE["o"].public_key.key_id
        return self._stage.log / "_lanes" / "statement" / hashlib.sha256(owner).hexdigest() / f"origin={owner.hex()}"

    def _foreign(self, records: list[Path], target: int) -> bytes:
        """A record that would continue the honest lane: in its owner's name with a wrong signature, or in ours."""
        owner = PEOPLE["sb"].public_key
        lane = LaneId(
            kind="events", owner=owner.key_id, topic=self._stage.lane_folder("sb").parent.name.removeprefix("type=")
        )
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


def following_record(lane: Path) -> Path:
    """Where the next record of a lane will lie; the first ones may be gone."""
    last = max((int(path.stem) for path in lane.glob("*.record")), default=-1)
    return lane / f"{last + 1:012d}.record"


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else b""
