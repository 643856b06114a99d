"""Handing over, piece by piece, what the delivery job put into the outbox for one subscription.

Rules kept here:

- a place says how far a client has taken its events: a commit of the outbox, how many of the events of that commit, and
  the commit's digest. What comes after a place is the same whenever and by whomever it is asked for, so a client that
  asks again from the place that it remembers loses nothing and gets nothing twice;
- a place of another outbox, or of one that was put back to an earlier time, is refused, never skipped;
- each piece is judged by the rights of now and told to the audit, see `deliveries`; where nothing lies behind a place
  nothing is told, so that asking often fills no audit;
- a place counts events as they were delivered. So a piece holds events that follow one another there; where the rights
  of now close some, a piece without events passes over them, and what a client counts stays true when rights change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pyarrow as pa

from maia.domain.deliveries import HandOver, begin_hand_over, outbox_of, own_subscription
from maia.domain.domain import Domain
from maia.domain.possession import ProvenClient
from maia.errors import EncodingError, MalformedError, UsageError
from maia.log import OK, Kept, Outbox, hash_subscription, outbox_secret

_NUMBER = r"(0|[1-9][0-9]{0,11})"
_MOST_CLOSED = 65_536  # events that one piece passes over
_PLACE = re.compile(rf"(?:{_NUMBER}\.{_NUMBER}\.([0-9a-f]{{16}}))?(?:\+([1-9][0-9]{{0,5}}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxPlace:
    """How far a client has taken the events of a subscription.

    Attributes:
        commit: The number of the last commit of the outbox of which it has something; -1 before the first.
        events: How many events of that commit it has.
        digest: The beginning of that commit's digest.
        more: How many further events it has taken, of this commit and those behind it.
    """

    commit: int = -1
    events: int = 0
    digest: str = ""
    more: int = 0

    def __str__(self) -> str:
        """Write it as a client keeps it."""
        more = f"+{self.more}" if self.more else ""
        return more if self.commit < 0 else f"{self.commit}.{self.events}.{self.digest}{more}"

    @classmethod
    def parse(cls, text: str) -> OutboxPlace:
        """Read what a client kept; nothing is the beginning.

        Raises:
            MalformedError: It is none: ``RESUME_TOKEN``.

        >>> OutboxPlace.parse("7.2.0011223344556677+3").more, str(OutboxPlace.parse("+3")), OutboxPlace.parse("").commit
        (3, '+3', -1)
        """
        found = _PLACE.fullmatch(text)
        if found is None:
            raise MalformedError("not a place that this broker gave", code="RESUME_TOKEN")
        more = int(found[4] or 0)
        if found[1] is None:
            return cls(more=more)
        return cls(commit=int(found[1]), events=int(found[2]), digest=found[3], more=more)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """A piece of what a subscription was delivered, and the place behind it.

    Attributes:
        batches: Its events, without any of them when it only passes over closed ones.
        place: The place behind it.
        closed: How many events it passes over.
    """

    batches: tuple[pa.RecordBatch, ...]
    place: OutboxPlace
    closed: int = 0

    @property
    def events(self) -> int:
        """Count the events."""
        return sum(batch.num_rows for batch in self.batches)


def check_place(outbox: Outbox, place: OutboxPlace) -> None:
    """Refuse a place that is not of this outbox.

    Raises:
        UsageError: It is of another, or of one that was put back: ``RESUME_TOKEN_FOREIGN``.
    """
    if place.commit < 0:
        return
    try:
        known = outbox.digest(place.commit)
    except EncodingError:
        known = ""
    if known[: len(place.digest)] != place.digest or not known:
        raise UsageError(
            "the place is of another outbox, or of one that was put back to an earlier time; begin anew",
            code="RESUME_TOKEN_FOREIGN",
        )


def hand_over(domain: Domain, client: ProvenClient, name: str, *, after: OutboxPlace, most: int) -> HandedOver:
    """Give a client at most so many of the next events of its subscription, with its rights of now.

    Raises:
        MaiaError: The subscription is unknown or somebody else's, the client has no right any more, the place is
            foreign, or the outbox is damaged.
    """
    if most < 1:
        raise UsageError("events are handed over one or more at a time", code="OUTPUT_LIMIT")
    outbox = outbox_of(domain)
    check_place(outbox, after)
    own_subscription(domain, client, name)
    if _is_end(outbox, name, after):
        return HandedOver(batches=(), place=after)
    handed = begin_hand_over(domain, client, name)
    found: list[pa.RecordBatch] = []
    place, left, ahead, closed = replace(after, more=0), most, after.more, 0
    with handed.operation.failing():
        secret = outbox_secret(domain.home.broker.export_seed())
        for number, item in outbox.kept(name, secret, after=max(after.commit, 0) - 1, skip=after.events):
            passed = min(ahead, item.batch.num_rows)
            ahead -= passed
            rest = item.slice(passed)
            shown, hidden = _next_run(handed, rest, left, domain)
            if (hidden and found) or (shown is not None and closed):
                break
            consumed = hidden if shown is None else shown.num_rows
            taken = passed + consumed + (place.events if number == place.commit else 0)
            place = OutboxPlace(commit=number, events=taken, digest=outbox.digest(number)[:16])
            closed += hidden
            if shown is not None:
                found.append(shown)
                left -= shown.num_rows
            if not left or closed >= _MOST_CLOSED or consumed < rest.batch.num_rows:
                break
    handed.operation.end(OK, events=most - left)
    if ahead:
        raise UsageError("the place lies behind the last event", code="RESUME_TOKEN_FOREIGN")
    return HandedOver(batches=tuple(found), place=place, closed=closed)


def _is_end(outbox: Outbox, name: str, place: OutboxPlace) -> bool:
    """Tell whether nothing of a subscription lies behind a place, and nothing is opened for that."""
    hashed = hash_subscription(name)
    commits = outbox.commits(after=max(place.commit, 0) - 1)
    lies = sum(file.events for commit in commits for file in commit.files if file.subscription == hashed)
    return lies == place.events + place.more


def _next_run(handed: HandOver, item: Kept, most: int, domain: Domain) -> tuple[pa.RecordBatch | None, int]:
    """Take the events at the beginning of a delivery that are shown, or else count those that are closed."""
    count = item.batch.num_rows
    for rows, batch in handed.screen(item, at=domain.clock()):
        if rows and rows[0] == 0:
            run = next((place for place, row in enumerate(rows) if place != row), len(rows))
            return batch.slice(0, min(run, most)), 0
        if rows:
            return None, rows[0]
    return None, count
