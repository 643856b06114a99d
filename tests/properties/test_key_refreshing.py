"""The refresh rules against an oracle that looks at every instant, written from the rows 16.04 to 16.06 alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maia.encryption import ChangeKind, GroupChange, GroupState, next_refresh, plan_refreshes, step_group

LAST = 40
MEMBERS = (b"a", b"b", b"c")
instants = st.integers(0, LAST)


@st.composite
def joins(draw: st.DrawFn) -> GroupChange:
    """A join on a credential that may be of any time, also of none that counts."""
    at = draw(instants)
    start = draw(st.sampled_from((None, 0, 10)) | st.integers(-5, LAST))  # few, so that one comes back
    stop = draw(st.sampled_from((None, 30, 45)) | st.integers(-5, LAST + 10))
    return GroupChange(
        at=at, kind=ChangeKind.JOIN, member=draw(st.sampled_from(MEMBERS)), valid_from=start, valid_to=stop,
        credential=draw(st.sampled_from((b"", b"1", b"2"))),
    )  # fmt: skip


others = st.builds(
    GroupChange,
    at=instants,
    kind=st.sampled_from((ChangeKind.LEAVE, ChangeKind.REVOKE, ChangeKind.REFRESH, ChangeKind.EXHAUST)),
    member=st.sampled_from(MEMBERS),
    credential=st.sampled_from((b"", b"", b"1")),
)
histories = st.lists(joins() | others, max_size=12)
periods = st.none() | st.integers(1, 25)


@dataclass
class Oracle:
    """One group, an instant at a time, by the words of the rows."""

    period: int | None
    last: int | None = None
    inside: set[bytes] = field(default_factory=set)
    knows: set[bytes] = field(default_factory=set)
    """Who could have the current key."""
    shown: dict[bytes, dict[object, list[int | None]]] = field(default_factory=dict)
    """By member and credential: from, to, and when it was revoked."""

    def authorised(self, member: bytes, instant: int) -> bool:
        """Tell whether a credential that was shown covers an instant."""
        return any(
            (start is None or start <= instant)
            and (stop is None or instant < stop)
            and (revoked is None or instant < revoked)
            for start, stop, revoked in self.shown.get(member, {}).values()
        )

    def over(self, member: bytes, instant: int) -> bool:
        """Tell whether a member's authority is over for good: no credential covers this or a later instant."""
        return not any(
            revoked is None and (stop is None or stop > instant) for _, stop, revoked in self.shown[member].values()
        )

    def step(self, instant: int, changes: list[GroupChange]) -> tuple[bool, bool]:
        """Live through an instant; tell whether the key changes, and whether that was an order."""
        reasons: set[str] = set()
        for change in changes:
            getattr(self, f"do_{change.kind.value}")(change, instant, reasons)
        for member in sorted(self.knows):
            if self.over(member, instant):
                reasons.add("16.05")  # the end of a leaver's credential, or of one inside
                self.inside.discard(member)
        if self.last is not None and self.period is not None and instant - self.last >= self.period:
            reasons.add("16.06")
        if reasons:
            self.last = instant
            self.knows = set(self.inside)
        return bool(reasons), "order" in reasons

    def do_join(self, change: GroupChange, instant: int, reasons: set[str]) -> None:
        """16.04: refresh unless the joiner was already authorised at the last refresh."""
        own = self.shown.setdefault(change.member, {})
        name = change.credential or (change.valid_from, change.valid_to)
        starts, stops = change.valid_from, change.valid_to
        valid = (starts is None or starts <= instant) and (stops is None or instant < stops)
        if not valid or (name in own and own[name][2] is not None):
            return
        own[name] = [starts, stops, None]
        self.inside.add(change.member)
        before = self.last is not None and self.authorised(change.member, self.last)
        if change.member not in self.knows and not before:
            reasons.add("16.04")
        self.knows.add(change.member)

    def do_leave(self, change: GroupChange, _instant: int, _reasons: set[str]) -> None:
        """16.05: a leave by itself changes no key."""
        self.inside.discard(change.member)

    def do_revoke(self, change: GroupChange, instant: int, reasons: set[str]) -> None:
        """16.05: revocation counts as expiry now."""
        own = self.shown.get(change.member, {})
        for name, credential in own.items():
            if credential[2] is None and (not change.credential or name == change.credential):
                credential[2] = instant
        if own and self.over(change.member, instant):
            self.inside.discard(change.member)
            if change.member in self.knows:
                reasons.add("16.05")

    def do_refresh(self, _change: GroupChange, _instant: int, reasons: set[str]) -> None:
        """Somebody orders a refresh."""
        reasons.add("order")

    def do_exhaust(self, _change: GroupChange, _instant: int, reasons: set[str]) -> None:
        """T46: the key is used up."""
        reasons.add("use")


def expected(changes: list[GroupChange], period: int | None) -> list[int]:
    """Look at every instant in turn."""
    oracle, found = Oracle(period), []
    for instant in range(LAST + 1):
        changed, ordered = oracle.step(instant, [change for change in changes if change.at == instant])
        if changed and not ordered:
            found.append(instant)
    return found


@settings(max_examples=400)
@given(histories, periods)
def test_refreshes_are_those_of_the_rows(changes: list[GroupChange], period: int | None) -> None:
    """Planned from event to event, found by looking at every instant: the same refreshes."""
    assert [refresh.at for refresh in plan_refreshes(changes, period=period, until=LAST)] == expected(changes, period)


@settings(max_examples=200)
@given(histories, periods)
def test_a_state_that_was_written_down_goes_on_the_same(changes: list[GroupChange], period: int | None) -> None:
    """Written and read between any two steps, as a manager does, nothing is forgotten that matters."""
    kept, written = GroupState(), GroupState()
    by_time = groupby(sorted(changes, key=lambda change: change.at), key=lambda change: change.at)
    for at, group in [(at, list(group)) for at, group in by_time]:
        kept, one = step_group(kept, group, at=at, period=period)
        written, other = step_group(GroupState.from_bytes(written.to_bytes()), group, at=at, period=period)
        assert one == other
        assert kept == written
        assert next_refresh(kept, period=period) == next_refresh(written, period=period)


@given(st.binary(max_size=200))
def test_reading_a_state_raises_only_maia_errors(data: bytes) -> None:
    """Whatever stands in the database."""
    from maia.errors import MaiaError

    with pytest.raises(MaiaError):
        GroupState.from_bytes(data)
