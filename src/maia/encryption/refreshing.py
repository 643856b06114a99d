"""When a key group's key must change: the refresh rules, as a state and one step.

Times are milliseconds of the epoch. A *holder* is whoever could have the current key: members, and those who left since
the last refresh. Rules kept here (row numbers of the requirements):

- 16.04: a join refreshes unless the joiner was authorised at the last refresh. Authorised is whoever showed a
  credential that covers that instant, its first instant included. A holder was, by induction, so coming back before the
  refresh that its leaving waits for changes nothing; that wait ends with the authority of the one who came back. Before
  the first refresh nobody was authorised, so the first join makes the first key.
- 16.05: a leave waits for the end of the leaver's authority or the period, whichever is first. Revocation is an end
  now, for members and for leavers who still hold the key; for everybody else it changes no key.
- 16.09: a member whose credential ends while it is inside is put out at that instant, and the key is refreshed then;
  its later leave is none. A join on a credential that is not valid at that instant, or that was revoked, is none.
- Credentials may have identities. One that is shown again replaces what was known of it, since its statements may have
  been renewed or cut; one that is revoked alone ends the membership only when no other carries it.
- 16.06: no key is current for longer than the period, counted from the last refresh of any kind, members or not.
- T46: a key that was used up is refreshed at once.
- A refresh, for whatever reason, serves everybody who left by then. What happens at one instant happens together: a
  leave at the instant of a refresh is served by it, and several reasons make one refresh.

A step never goes back in time: an earlier instant counts as that of the last refresh, and a second refresh within a
millisecond takes the next, since an epoch is known by its start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby
from types import MappingProxyType

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, UsageError

MAX_REFRESHES = 100_000
STATE_LIMITS = SexpLimits(max_bytes=64 << 20, max_depth=4, max_atom=1024)
_DIGITS = 20


class ChangeKind(Enum):
    """What can happen to a key group."""

    JOIN = "join"
    LEAVE = "leave"
    REVOKE = "revoke"
    REFRESH = "refresh"
    EXHAUST = "exhaust"


class RefreshCause(Enum):
    """Why a key was refreshed."""

    JOIN = "join"
    END = "end"
    REVOCATION = "revocation"
    PERIOD = "period"
    USE = "use"
    ORDER = "order"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """Something that happens to a key group. Only joins carry a validity; ``None`` is an open end.

    ``credential`` tells the credentials of a member apart. A revocation without one is of all of them.
    """

    at: int
    kind: ChangeKind
    member: bytes = b""
    valid_from: int | None = None
    valid_to: int | None = None
    credential: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """A refresh, and all reasons for it."""

    at: int
    causes: frozenset[RefreshCause]


@dataclass(frozen=True, slots=True)
class GroupCredential:
    """Authority that a member showed: from ``start`` up to ``stop``, or to its revocation."""

    start: int | None
    stop: int | None
    revoked: int | None = None
    identity: bytes = b""

    @property
    def end(self) -> int | None:
        """When it is over; ``None`` when it has no end."""
        return self.stop if self.revoked is None else self.revoked

    def covers(self, instant: int) -> bool:
        """Tell whether it holds at an instant."""
        return (self.start is None or self.start <= instant) and (self.end is None or instant < self.end)


@dataclass(frozen=True, slots=True)
class _Standing:
    """What is known of one member: its credentials, whether it is inside, whether it holds the current key."""

    credentials: tuple[GroupCredential, ...] = ()
    inside: bool = False
    holds: bool = False

    def ended(self, instant: int) -> bool:
        end = self.end
        return end is not None and end <= instant

    @property
    def end(self) -> int | None:
        """When the authority is over: the latest end, since every credential was valid when it was shown."""
        ends = [credential.end for credential in self.credentials]
        return None if None in ends else max((end for end in ends if end is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """What the rules remember of a key group."""

    last: int | None = None
    standings: Mapping[bytes, _Standing] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def members(self) -> frozenset[bytes]:
        """Those inside."""
        return frozenset(name for name, standing in self.standings.items() if standing.inside)

    @property
    def leavers(self) -> frozenset[bytes]:
        """Those who are outside and still hold the current key."""
        return frozenset(name for name, s in self.standings.items() if s.holds and not s.inside)

    def credentials_of(self, member: bytes) -> tuple[GroupCredential, ...]:
        """List what a member showed and the rules still remember, revoked or not."""
        standing = self.standings.get(member)
        return () if standing is None else standing.credentials

    def to_bytes(self) -> bytes:
        """Write the state down; it holds no key."""
        members: tuple[Sexp, ...] = tuple(
            (
                name, b"%d" % standing.inside, b"%d" % standing.holds,
                *((_text(c.start), _text(c.stop), _text(c.revoked), c.identity) for c in standing.credentials),
            )
            for name, standing in sorted(self.standings.items())
        )  # fmt: skip
        return encode((b"group-state", _text(self.last), *members))

    @classmethod
    def from_bytes(cls, data: bytes) -> GroupState:
        """Read what `to_bytes` wrote.

        Raises:
            EncodingError: It is something else.

        >>> state, _ = step_group(GroupState(last=100), [GroupChange(at=130, kind=ChangeKind.JOIN, member=b"m")],
        ...     at=130, period=None)
        >>> GroupState.from_bytes(state.to_bytes()) == state
        True
        """
        match parse_canonical(data, limits=STATE_LIMITS):
            case (b"group-state", bytes(last), *members):
                standings = dict(_read_standing(member) for member in members)
                return cls(last=_number(last), standings=MappingProxyType(standings))
            case _:
                raise _wrong()


def _text(number: int | None) -> bytes:
    return b"" if number is None else b"%d" % number


def _number(text: object) -> int | None:
    if text == b"":
        return None
    if not isinstance(text, bytes) or not text.removeprefix(b"-").isdigit() or len(text) > _DIGITS:
        raise _wrong()
    return int(text)


def _read_standing(item: Sexp) -> tuple[bytes, _Standing]:
    match item:
        case (bytes(name), (b"0" | b"1") as inside, (b"0" | b"1") as holds, *credentials):
            read = tuple(_read_credential(credential) for credential in credentials)
            return name, _Standing(read, inside=inside == b"1", holds=holds == b"1")
        case _:
            raise _wrong()


def _read_credential(item: Sexp) -> GroupCredential:
    match item:
        case (start, stop, revoked, bytes(identity)):
            return GroupCredential(_number(start), _number(stop), _number(revoked), identity)
        case _:
            raise _wrong()


def _wrong() -> EncodingError:
    return EncodingError("not the state of a key group", code="GROUP_STATE_SHAPE")


def step_group(
    state: GroupState, changes: Iterable[GroupChange], *, at: int, period: int | None
) -> tuple[GroupState, Refresh | None]:
    """Apply what happens at one instant, timers included, and tell whether the key must change.

    Call it for every instant with a change and for every instant that `next_refresh` names.

    Args:
        state: As it was.
        changes: All that happens at ``at``, in order; their own times are not looked at.
        at: The instant.
        period: How long a key may be current; ``None`` for ever.

    Raises:
        UsageError: The period is not positive.

    >>> join = GroupChange(at=130, kind=ChangeKind.JOIN, member=b"m", valid_from=120, valid_to=400)
    >>> state, refresh = step_group(GroupState(last=100), [join], at=130, period=None)
    >>> refresh.at, sorted(cause.value for cause in refresh.causes), state.members
    (130, ['join'], frozenset({b'm'}))
    """
    if period is not None and period <= 0:
        raise UsageError("a refresh period is positive", code="REFRESH_PERIOD")
    at = at if state.last is None else max(at, state.last)
    known = dict(state.standings)
    causes = {cause for change in changes if (cause := _apply(known, change, at=at, last=state.last)) is not None}
    for name, standing in known.items():
        if standing.holds and standing.ended(at):
            causes.add(RefreshCause.END)
            known[name] = replace(standing, inside=False)
    if state.last is not None and period is not None and at >= state.last + period:
        causes.add(RefreshCause.PERIOD)
    if not causes:
        return GroupState(last=state.last, standings=MappingProxyType(known)), None
    start = at if state.last is None else max(at, state.last + 1)
    return GroupState(last=start, standings=MappingProxyType(_after(known, start))), Refresh(
        at=start, causes=frozenset(causes)
    )


def _apply(known: dict[bytes, _Standing], change: GroupChange, *, at: int, last: int | None) -> RefreshCause | None:
    """Do one change; return why the key must change for it, if it must."""
    if change.kind is ChangeKind.REFRESH:
        return RefreshCause.ORDER
    if change.kind is ChangeKind.EXHAUST:
        return RefreshCause.USE
    standing = known.get(change.member, _Standing())
    if change.kind is ChangeKind.JOIN:
        return _join(known, standing, change, at=at, last=last)
    if change.kind is ChangeKind.LEAVE:
        if standing.inside:
            known[change.member] = replace(standing, inside=False)
        return None
    if change.member not in known:
        return None
    credentials = tuple(
        replace(c, revoked=at) if c.revoked is None and change.credential in (b"", c.identity) else c
        for c in standing.credentials
    )
    left = replace(standing, credentials=credentials)
    if not left.ended(at):
        known[change.member] = left  # another credential carries the membership
        return None
    known[change.member] = replace(left, inside=False)
    return RefreshCause.REVOCATION if standing.holds else None


def _join(
    known: dict[bytes, _Standing], standing: _Standing, change: GroupChange, *, at: int, last: int | None
) -> RefreshCause | None:
    credential = GroupCredential(change.valid_from, change.valid_to, identity=change.credential)
    revoked = any(c.revoked is not None and _same(c, credential) for c in standing.credentials)
    if revoked or not credential.covers(at):
        return None  # SECURITY: no authority now, so no membership and no key
    others = tuple(c for c in standing.credentials if not _same(c, credential))
    joined = _Standing((*others, credential), inside=True, holds=True)
    known[change.member] = joined
    entitled = standing.holds or (last is not None and any(c.covers(last) for c in joined.credentials))
    return None if entitled else RefreshCause.JOIN


def _same(one: GroupCredential, other: GroupCredential) -> bool:
    """Tell whether two are one credential: by identity, or without one by their times."""
    if one.identity or other.identity:
        return one.identity == other.identity
    return (one.start, one.stop) == (other.start, other.stop)


def _after(known: Mapping[bytes, _Standing], at: int) -> dict[bytes, _Standing]:
    """After a refresh only members hold the key; what can matter no more is forgotten."""
    left: dict[bytes, _Standing] = {}
    for name, standing in known.items():
        # A revoked credential is remembered until it would have ended, so that it does not come back.
        credentials = tuple(c for c in standing.credentials if c.stop is None or c.stop > at)
        if standing.inside or credentials:
            left[name] = _Standing(credentials, inside=standing.inside, holds=standing.inside)
    return left


def next_refresh(state: GroupState, *, period: int | None) -> int | None:
    """Tell when the key must change next if nothing else happens; ``None`` when never.

    >>> next_refresh(GroupState(last=100), period=200)
    300
    """
    due = [s.end for s in state.standings.values() if s.holds and s.end is not None]
    if state.last is not None and period is not None:
        due.append(state.last + period)
    return min(due, default=None)


def plan_refreshes(changes: Iterable[GroupChange], *, period: int | None, until: int) -> tuple[Refresh, ...]:
    """List the refreshes that the rules ask for, up to and including ``until``.

    A refresh that is among the changes is an order that was carried out: it counts as the last refresh and serves
    whoever waits, and it is not listed. Changes are taken in the order of their times; later ones than ``until`` do not
    count.

    Raises:
        UsageError: The period is not positive, or there would be more than 100,000 refreshes.

    >>> order = GroupChange(at=100, kind=ChangeKind.REFRESH)
    >>> join = GroupChange(at=110, kind=ChangeKind.JOIN, member=b"m", valid_from=90, valid_to=260)
    >>> leave = GroupChange(at=200, kind=ChangeKind.LEAVE, member=b"m")
    >>> [refresh.at for refresh in plan_refreshes([order, join, leave], period=200, until=400)]
    [260]
    """
    ordered = sorted((change for change in changes if change.at <= until), key=lambda change: change.at)
    instants = [(at, list(group)) for at, group in groupby(ordered, key=lambda change: change.at)]
    state, planned, position = GroupState(), list[Refresh](), 0
    while len(planned) <= MAX_REFRESHES:
        due = next_refresh(state, period=period)
        if position < len(instants) and (due is None or instants[position][0] <= due):
            at, batch = instants[position]
            position += 1
        elif due is not None and due <= until:
            at, batch = due, []
        else:
            return tuple(planned)
        state, refresh = step_group(state, batch, at=at, period=period)
        if refresh is not None and RefreshCause.ORDER not in refresh.causes:
            planned.append(refresh)
    raise UsageError(f"more than {MAX_REFRESHES} refreshes", code="REFRESH_LIMIT")
