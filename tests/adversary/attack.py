"""Plays sequences on a stage and holds what happens against the oracle; makes failing ones small."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import singledispatchmethod
from pathlib import Path
from types import FrameType

from caretaker import Caretaker, events_of, failing
from impostor import impersonate
from keys_play import KeysPlay
from moves import (
    ON_HOMES,
    PUBLISH,
    READERS,
    THEMES,
    UIDS,
    Again,
    Call,
    Commit,
    Fail,
    Follow,
    Forge,
    Issue,
    Join,
    Migrate,
    Move,
    Pass,
    Prove,
    Publish,
    Repeat,
    Restore,
    Revoke,
    Row,
    Sequence,
    Subscribe,
    Tamper,
    Tidy,
)
from oracle import Oracle, cell
from rogue import Own, Rogue
from stage import PEOPLE, SKEW, Fixed, Sealed, Shown, Stage, at, certificate, forged, name_certificate
from vandal import DEAF, HARM, MUTE, Vandal
from violation import ViolationError

from maia.errors import MaiaError, UnavailableError
from maia.kernel import milliseconds

SECONDS = 300
"""How long one sequence may take before it counts as a hang."""
READING = frozenset(("upkeep", *(theme for theme, (_, weights) in THEMES.items() if Subscribe in weights)))
"""What sequences are about in the end of which a client of the coalition looks once more."""
SB = PEOPLE["sb"].public_key.key_id.hex()
XB = PEOPLE["xb"].public_key.key_id.hex()


class Play:
    """One sequence on its stage."""

    def __init__(self, fixed: Fixed, root: Path, sequence: Sequence) -> None:
        """Build the stage and the oracle."""
        self.fixed = fixed
        self.sequence = sequence
        self.oracle = Oracle(sequence)
        self.stage = Stage(fixed, root, sequence.given, domain=sequence.domain)
        self.vandal, self.rogue, self.caretaker = Vandal(self.stage), Rogue(self.stage), Caretaker(self.stage)
        self.tampered = any(isinstance(move, Tamper) for move in sequence.moves)
        self.lane: list[str] = []
        self.truth: dict[str, Row] = {}
        self.streamed: list[str] = []
        self.foreign: list[Own] = []
        self.names: list[tuple[str, str, tuple[Row, ...]]] = []
        self.plans: list[tuple[Subscribe, tuple[int, ...]]] = []
        self.expired: set[str] = set()
        self.doubted: set[str] = set()
        self.fails = 0

    def run(self) -> None:
        """Play all moves, and in the end see that everything honest arrived.

        Raises:
            ViolationError: A law was broken.
        """
        for number, move in enumerate(self.sequence.moves):
            self._pass(1)
            try:
                self.make(move)
            except ViolationError as error:
                raise ViolationError(f"move {number}, {type(move).__name__}: {error}") from error
            if self.tampered:
                self.vandal.watch()
        self._pass(1)
        self.make(Restore())
        self.make(Follow())
        if self.streamed != self.lane:
            lost = [event for event in self.lane if event not in self.streamed]
            raise ViolationError(f"in the end {len(lost)} events of the honest publisher are lost: {self.stage.parked}")
        if self.sequence.theme in READING:
            self.make(Subscribe(READERS[self.sequence.seed % 2], None))

    def _pass(self, seconds: int) -> None:
        self.oracle.now += seconds
        self.stage.now = self.oracle.now

    @singledispatchmethod
    def make(self, move: Move) -> None:
        """Make one move."""
        raise TypeError(move)

    # -- certificates

    @make.register
    def _(self, move: Issue) -> None:
        self.oracle.links.append(move.link)
        self.stage.ids.append(self.stage.add(certificate(move.link)))

    @make.register
    def _(self, move: Forge) -> None:
        self.stage.add(forged(move.link))

    @make.register
    def _(self, move: Call) -> None:
        self.stage.add(name_certificate(move.naming))
        self.oracle.mixed |= (move.naming.issuer, move.naming.name) == ("x", "domains")

    @make.register
    def _(self, move: Revoke) -> None:
        listed = self.oracle.listed()
        if listed:
            number = listed[move.which % len(listed)]
            self.oracle.revoked.setdefault(number, self.oracle.now)
            self.stage.revoke(self.stage.ids[number])

    @make.register
    def _(self, move: Pass) -> None:
        self._pass(move.seconds)
        self.stage.upkeep()

    @make.register
    def _(self, move: Join) -> None:
        got, now = self.stage.join(move.who), self.oracle.now
        may = self.oracle.keys_for(move.who, now, sure=False)
        if not got <= may:
            raise ViolationError(f"{move.who} gets the keys of {sorted(got - may)}")
        if not self.oracle.keys_for(move.who, now, sure=True) <= got:
            raise ViolationError(f"{move.who} is refused keys that it may hold")

    @make.register
    def _(self, move: Prove) -> None:
        if impersonate(self.fixed, move.how):
            raise ViolationError(f"somebody without the key is taken for its holder: {move.how}")

    # -- publishing

    @make.register
    def _(self, move: Publish) -> None:
        self._publish(move.who, move.rows, f"p{len(self.names)}")

    def _publish(self, who: str, rows: tuple[Row, ...], name: str) -> None:
        self.names.append((name, who, rows))
        try:
            sealed = self._retried(who, rows, name)
        except MaiaError as error:
            if who == "camera":
                raise ViolationError(f"the honest publisher is stopped: {error.code}") from error
            return
        if sealed is None:
            raise ViolationError("a publication that was never made is taken for a repetition")
        if who == "camera" and [row for _, row in sealed.events] != list(rows):
            raise ViolationError("rows of the honest publisher were altered or refused")
        for (event, row), number in zip(sealed.events, sealed.rows, strict=True):
            if not self.oracle.may_publish(who, row, rows[number], self.oracle.now):
                raise ViolationError(f"{who} published {row} of {rows[number]}, which it may not")
            self.lane.append(event)
            self.truth[event] = row

    def _retried(self, who: str, rows: tuple[Row, ...], name: str) -> Sealed | None:
        """Publish; where the disk fails on the way, once more under the same name, from a home that is opened anew."""
        with self._disk() as failed:
            try:
                made = self.stage.publish(who, rows, name=name)
            except UnavailableError:
                if not failed():
                    raise
                made = None
        if not failed():
            return made
        self.stage.reassert()
        return made or self.stage.publish(who, rows, name=name) or self.stage.counted(name)

    @make.register
    def _(self, move: Repeat) -> None:
        made = [item for item in self.names if item[1] == "camera"]
        if made:
            name, who, rows = made[move.which % len(made)]
            with suppress(MaiaError):
                if self.stage.publish(who, rows, name=name) is not None:
                    raise ViolationError("a publication that is repeated counts twice")

    # -- the honest lane

    @make.register
    def _(self, move: Fail) -> None:
        self.fails = move.call

    @contextmanager
    def _disk(self) -> Iterator[Callable[[], bool]]:
        """Let the disk fail as it was said, if it was; tell whether it did."""
        after, self.fails = self.fails, 0
        if not after:
            yield lambda: False
            return
        with failing(after) as failed:
            yield failed

    @make.register
    def _(self, move: Tidy) -> None:
        before, gone = self.caretaker.ending(move.target) if move.how == "expire" else (at(0), set())
        with self._disk() as failed:
            done = self._tidied(move, before, harmed=self.oracle.harmed or failed)
        if not done and failed():
            done = self._tidied(move, before, harmed=self.oracle.harmed)
        if done:
            self.expired |= gone
            offered = {event for commit in self.stage.lanes_commits() for event in events_of(commit)}
            if not self.oracle.harmed and not offered.isdisjoint(gone):
                raise ViolationError("the log still offers what has expired")
        self.doubted |= gone

    def _tidied(self, move: Tidy, before: datetime, *, harmed: bool | Callable[[], bool]) -> bool:
        """Do upkeep; tell whether it ended well, as it must where nobody harmed the lane."""
        try:
            self.caretaker.tidy(move.how, move.target, before)
        except MaiaError as error:
            if not (harmed() if callable(harmed) else harmed) and not self.oracle.harmed:
                raise ViolationError(f"the honest publisher cannot {move.how} its lane: {error.code}") from error
            return False
        return True

    @make.register
    def _(self, move: Migrate) -> None:
        with suppress(MaiaError):
            self.caretaker.migrate(move.source, move.number)

    # -- the log

    @make.register
    def _(self, move: Commit) -> None:
        self.rogue.commit(move.how, move.rows)

    @make.register
    def _(self, move: Tamper) -> None:
        effect = self.vandal.tamper(move.how, move.target)
        # A head is what says that the beginning has expired; an old one makes readers wait for what is gone.
        self.oracle.harmed |= effect == HARM or (bool(self.doubted) and move.how.endswith("-head"))
        self.oracle.deaf |= effect in (DEAF, MUTE)
        if effect == MUTE and self.oracle.muted is None:
            self.oracle.muted = self.oracle.now

    @make.register
    def _(self, _: Restore) -> None:
        if self.vandal.touched:
            self.vandal.restore()
            self.stage.reassert()
        self.stage.upkeep()
        self.fails = 0
        self.oracle.harmed = self.oracle.deaf = False
        self.oracle.muted = None

    # -- reading

    @make.register
    def _(self, _: Follow) -> None:
        with self._disk() as failed:
            try:
                rows = self.stage.step()
            except MaiaError as error:
                if not self.oracle.harmed and not failed():
                    raise ViolationError(f"the honest reader is stopped: {error.code}") from error
                return
        for lane, event, row in rows:
            if lane == SB:
                if event not in self.truth:
                    raise ViolationError(f"event {event} of the honest lane was never published")
                if row != self.truth[event]:
                    raise ViolationError(f"event {event} was {self.truth[event]} and arrives as {row}")
                self.streamed.append(event)
        if self.streamed != self.lane[: len(self.streamed)]:
            raise ViolationError("events of the honest lane are lost, repeated or out of order")
        if not self.oracle.harmed and not failed() and self.streamed != self.lane:
            raise ViolationError(f"events of the honest lane do not arrive: {self.stage.parked}")
        self._foreign(rows, self.foreign)

    @make.register
    def _(self, move: Subscribe) -> None:
        rows: list[Shown] = []
        may, must = (self.oracle.alive(self.oracle.now, sure=sure) for sure in (False, True))
        with suppress(MaiaError):
            rows = self.stage.read(move.who, move.where)
        if len(self.stage.plans) > len(self.plans):
            self.plans.append((move, may))
        shown = self._shown(move, rows, may)
        if not self.expired.isdisjoint(shown):
            raise ViolationError(f"{move.who} is shown what has expired")
        for event in () if self.oracle.harmed else self.lane:
            if event in self.doubted:
                continue
            cells = self.oracle.seen(move.who, self.truth[event], move.where, must)
            if cells is not None and any(event not in shown or cell(shown[event], uid) != cells[uid] for uid in cells):
                raise ViolationError(f"{move.who} is not shown {cells} of {self.truth[event]}, which is open to it")

    @make.register
    def _(self, move: Again) -> None:
        rows: list[Shown] = []
        if self.plans:
            number = move.which % len(self.plans)
            with suppress(MaiaError):
                rows = self.stage.again(number)
            asked, held = self.plans[number]
            self._shown(asked, rows, self.oracle.carried(held))

    def _shown(self, move: Subscribe, rows: list[Shown], links: tuple[int, ...]) -> dict[str, Row]:
        """Hold what a client of the coalition is shown against what it may be shown by these links."""
        got = [(event, row) for lane, event, row in rows if lane == SB]
        if len({event for event, _ in got}) != len(got):
            raise ViolationError(f"{move.who} is shown an event twice")
        for event, row in got:
            may = self.oracle.seen(move.who, self.truth[event], move.where, links)
            if may is None:
                raise ViolationError(f"{move.who} is shown an event that is closed to it: {row} of {self.truth[event]}")
            for uid, value in zip(UIDS, row, strict=True):
                if value is not None and may.get(uid) != value:
                    raise ViolationError(f"{move.who} is shown x{uid} = {value} of {self.truth[event]}")
        self._foreign(rows, [])
        return dict(got)

    def _foreign(self, rows: list[Shown], seen: list[Own]) -> None:
        """Look at what came from lanes of the coalition: its own events, of one history, and within its right.

        Args:
            rows: What was shown.
            seen: What was shown to the same reader before, if it goes on from a place; this is added.
        """
        counts = Counter(event for lane, event, _ in rows if lane != SB)
        for lane, event, row in rows:
            if lane == SB:
                continue
            sealed = self.rogue.sealed.get(event, [])
            if lane != XB or len(sealed) < counts[event]:
                raise ViolationError(f"event {event} comes from a lane that it was not published to")
            own = sealed[0]
            if not self.oracle.may_stand("xb", own.row, row, (own.at, self.oracle.now)):
                raise ViolationError(f"{row} arrives, which xb may not {PUBLISH}")
            if own.stamp <= own.floor:
                raise ViolationError("an event is dated back behind what its lane holds")
            if own.stamp > milliseconds(at(self.oracle.now)) + SKEW:
                raise ViolationError("an event is dated ahead")
            if any(other.place != own.place and other.place not in own.before for other in seen):
                raise ViolationError("a lane goes on from what it did not show")
            seen.append(own)


# ---------------------------------------------------------------- running


def attempt(fixed: Fixed, sequence: Sequence) -> str | None:
    """Play one sequence; tell what law it broke, if any."""
    root = fixed.root / "sequence"
    shutil.rmtree(root, ignore_errors=True)
    try:
        with _in_time():
            play = KeysPlay if sequence.theme in ON_HOMES else Play
            play(fixed, root, sequence).run()
    except ViolationError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever an attacker makes the product raise is a finding
        return f"{type(error).__name__}: {error}"
    return None


def shrink(sequence: Sequence, fails: Callable[[Sequence], bool]) -> Sequence:
    """Leave out moves and rights while the sequence still fails."""
    smaller = True
    while smaller:
        smaller = False
        for number in reversed(range(len(sequence.moves))):
            if fails(less := sequence.without(move=number)):
                sequence, smaller = less, True
        for number in reversed(range(len(sequence.given))):
            if fails(less := sequence.without(link=number)):
                sequence, smaller = less, True
    return sequence


@contextmanager
def _in_time() -> Iterator[None]:
    def over(_signal: int, _frame: FrameType | None) -> None:
        raise ViolationError(f"it takes longer than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
