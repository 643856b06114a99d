"""Plays sequences about keys on real homes, and holds what the coalition can open against what it may know."""

from __future__ import annotations

from functools import singledispatchmethod
from pathlib import Path

from homes import HEARD, SILENCE, Homes, build, copy
from moves import Follow, Join, Move, Naming, Pass, Publish, Restore, Revoke, Row, Sequence, Tamper
from oracle import Oracle
from stage import Fixed
from vandal import following_record
from violation import ViolationError

from maia.errors import MaiaError

LEAD = 2
"""When the key is a new one after an eviction, in seconds: a lead, and the move in which it is noticed."""
WITHHELD = LEAD + HEARD + SILENCE
"""The same when the announcement is kept from a publisher: until it knows that it hears nothing."""


class KeysPlay:
    """One sequence about keys."""

    def __init__(self, fixed: Fixed, root: Path, sequence: Sequence) -> None:
        """Copy the world, and give what is given."""
        template = fixed.root / "homes"
        if not template.exists():
            build(fixed, template)
        copy(template, root)
        self.sequence = sequence
        self.oracle = Oracle(sequence, now=2)
        self.world = Homes(fixed, root, now=2, withhold=self._withhold)
        first = len(self.oracle.links) - len(sequence.given)
        self.ids = {first + number: self.world.give(link) for number, link in enumerate(sequence.given)}
        if sequence.domain:
            self.world.name(Naming("o", "domains", "x"))
        self.held: set[str] = set()
        self.ended: dict[str, int] = {}
        self.sealed: list[tuple[str, Row, int]] = []
        self.streamed: list[str] = []
        self.taken: dict[Path, bytes] = {}
        self.old: dict[Path, list[bytes]] = {}
        self.muted: dict[Path, tuple[frozenset[Path], bytes]] = {}
        self.tampered = self.ever = False

    def run(self) -> None:
        """Play all moves, and in the end see what the coalition can open, and that everything honest arrived.

        Raises:
            ViolationError: A law was broken.
        """
        try:
            for number, move in enumerate(self.sequence.moves):
                self._pass(1)
                self._watch()
                try:
                    self.make(move)
                except ViolationError as error:
                    raise ViolationError(f"move {number}, {type(move).__name__}: {error}") from error
            self._pass(2)
            self.make(Restore())
            self._pass(2)
            self.make(Follow())
            if not self._complete():
                raise ViolationError(f"{len(self.sealed) - len(self.streamed)} events of the honest publisher are lost")
            self._look()
        finally:
            self.world.close()

    def _pass(self, seconds: int) -> None:
        self.oracle.now += seconds
        self.world.now = self.oracle.now

    @singledispatchmethod
    def make(self, move: Move) -> None:
        """Make one move."""
        raise TypeError(move)

    @make.register
    def _(self, move: Publish) -> None:
        try:
            sealed = self.world.publish(move.rows, name=f"p{self.oracle.now}")
        except MaiaError as error:
            if not self.tampered:
                raise ViolationError(f"the honest publisher is stopped: {error.code}") from error
            return
        self.sealed += [(event, row, self.oracle.now) for event, row in sealed.events]

    @make.register
    def _(self, _: Join) -> None:
        got, now = self.world.join("x"), self.oracle.now
        may = self.oracle.keys_for("xb", now, sure=False)
        if not got <= may:
            raise ViolationError(f"xb gets the keys of {sorted(got - may)}")
        if not self.tampered and not may <= got:
            raise ViolationError(f"xb is refused the keys of {sorted(may - got)}, which it may hold")
        self.held |= got
        self.world.collect()

    @make.register
    def _(self, move: Revoke) -> None:
        listed = self.oracle.listed()
        if listed:
            number, now = listed[move.which % len(listed)], self.oracle.now
            before = self.oracle.keys_for("xb", now, sure=False)
            self.oracle.revoked.setdefault(number, now)
            self.world.revoke(self.ids[number])
            for uid in before - self.oracle.keys_for("xb", now, sure=False):
                self.ended.setdefault(uid, now)

    @make.register
    def _(self, move: Pass) -> None:
        self._pass(move.seconds)
        self.world.tick()

    @make.register
    def _(self, _: Follow) -> None:
        self.world.collect()
        try:
            rows = self.world.step()
        except MaiaError as error:
            if not self.tampered:
                raise ViolationError(f"the honest reader is stopped: {error.code}") from error
            return
        truth = {event: row for event, row, _ in self.sealed}
        for _, event, row in rows:
            if truth.get(event) != row:
                raise ViolationError(f"event {event} was {truth.get(event)} and arrives as {row}")
            self.streamed.append(event)
        order = {event: number for number, (event, _, _) in enumerate(self.sealed)}
        places = [order[event] for event in self.streamed]
        if places != sorted(set(places)):
            raise ViolationError("events of the honest lane are repeated or out of order")
        if not self.tampered and not self._complete():
            raise ViolationError("events of the honest lane do not arrive")

    @make.register
    def _(self, move: Tamper) -> None:
        lanes = sorted((self.world.log / "_lanes" / "rekey").glob("*/origin=*"))
        for folder in lanes if move.target % 2 or move.how == "mute-rekey" else lanes[:1]:
            records = sorted(folder.glob("*.record"))
            match move.how:
                case "no-rekey" if len(records) > 1:
                    self._write(records[-1], None)
                    self._write(folder / "head", (self.old.get(folder / "head") or [None])[0])
                case "old-rekey" if len(records) > 1:
                    self._write(records[-1], records[-2].read_bytes())
                case "old-rekey-head":
                    self._write(folder / "head", (self.old.get(folder / "head") or [None])[0])
                case "mute-rekey":
                    self.muted.setdefault(folder, (frozenset(records), (folder / "head").read_bytes()))
                case "junk-rekey":
                    following_record(folder).write_bytes(b"junk")
                    continue
                case _:
                    continue
            self.tampered = self.ever = True

    @make.register
    def _(self, _: Restore) -> None:
        self.muted.clear()
        for path, data in self.taken.items():
            path.write_bytes(data)
        self.taken.clear()
        self.world.tick()
        self.tampered = False

    def _complete(self) -> bool:
        """Whether everything arrived that must."""
        return {event for event, _, _ in self.sealed} <= set(self.streamed)

    def _write(self, path: Path, data: bytes | None) -> None:
        if path.is_file():
            self.taken.setdefault(path, path.read_bytes())
        if data is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(data)

    def _withhold(self) -> None:
        """Take away what a manager said since it was muted."""
        for folder, (heard, head) in self.muted.items():
            for path in set(folder.glob("*.record")) - heard:
                self._write(path, None)
            self._write(folder / "head", head)

    def _watch(self) -> None:
        for path in (self.world.log / "_lanes" / "rekey").glob("*/origin=*/head"):
            self.old.setdefault(path, []).append(path.read_bytes())

    def _look(self) -> None:
        """Open all that the coalition can, with every key that it ever had."""
        self.world.collect()
        stamps = {event: stamp for event, _, stamp in self.sealed}
        slack = WITHHELD if self.ever else LEAD
        for event, uid in self.world.opened():
            ended = self.ended.get(uid)
            if uid not in self.held or (ended is not None and stamps[event] >= ended + slack):
                raise ViolationError(
                    f"the coalition opens x{uid} of an event of second {stamps[event]}, "
                    f"and its right ended in second {ended}"
                )
