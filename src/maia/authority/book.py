"""What a verifier knows about validity: the statements it accepted, and what they say now.

Rules kept here (rows 13.03 to 13.08, choices C19 and C31):

- timed lists of one signer and kind never overlap; an overlapping list is refused even when it revokes. A successor may
  come early and counts from its start; a gap between two lists is a time without a list, which denies;
- a later interval needs a higher sequence number, so an old list cannot be passed off as a new one. A list for the far
  future neither serves now nor stands in the way of the lists before it;
- a plain CRL replaces only one with a lower sequence number. Beside timed lists it can only take away: what it names is
  withdrawn at once, while its number is above that of the timed list in force. This is how active revocation reaches a
  verifier before the next list (row 13.10); withholding it gains no more than the rest of the list. It says itself that
  it only revokes, so forgetting the timed lists, or never having heard one, makes no verifier take it for one of them;
- a test is answered by the key it names and by no other; without an answer it fails;
- an answer to a challenge fits that nonce, that verifier and that request, and serves one decision.

The book never forgets what it accepted before its time is over, and it can be written down and read again, so a restart
forgets nothing either. It is bounded: lists of a signer, signers, answers that wait, and spent nonces, which are kept
until their challenge is over. A full book takes nothing new, which denies.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from maia.authority.limits import DEFAULT_VERIFIER_LIMITS, VerifierLimits
from maia.authority.statements import Challenge, ListStatement, OneTimeAnswer, Statement
from maia.authority.succession import Successions
from maia.errors import RevokedError, UncheckedError, VerificationError
from maia.principals import CertificateId, KeyId, OnlineTest, TestKind, check_aware

_Track = tuple[KeyId, TestKind]


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A passed test, and until when it may be relied upon (exclusive; ``None``: no end by itself)."""

    until: datetime | None
    nonce: bytes | None = None


class StatementBook:
    """The validity statements a verifier accepted, by signer and kind.

    Attributes:
        successions: Who speaks now for owners of several keys.
    """

    def __init__(
        self, *, limits: VerifierLimits = DEFAULT_VERIFIER_LIMITS, successions: Successions | None = None
    ) -> None:
        """Start without knowledge, which denies whatever needs a statement."""
        self.successions = Successions() if successions is None else successions
        self._limits = limits
        self._timed: dict[_Track, list[Statement]] = {}
        self._plain: dict[_Track, Statement] = {}
        self._answers: OrderedDict[tuple[KeyId, bytes], Statement] = OrderedDict()
        self._spent: dict[bytes, datetime | None] = {}
        self._revision = 0

    @property
    def revision(self) -> int:
        """Changes whenever an answer of this book may change other than by time."""
        return self._revision

    def phase(self, at: datetime) -> int:
        """Number the stretches of time in which the same timed lists are in force."""
        lists = [statement for track in self._timed.values() for statement in track]
        return sum((_starts(statement) <= at) + (_ends(statement) <= at) for statement in lists)

    def accept(self, statement: Statement) -> None:
        """Take a verified statement into the book.

        Raises:
            VerificationError: It contradicts what the book holds: ``STATEMENT_OVERLAP``, ``STATEMENT_ROLLBACK``.
            UncheckedError: The book holds too many statements of this signer, or too many signers.
        """
        body = statement.body
        if isinstance(body, OneTimeAnswer):
            self._accept_answer(statement, body)
        elif body.timed:
            self._accept_timed((statement.signer_id, body.kind), statement, body)
        else:
            self._accept_plain((statement.signer_id, body.kind), statement, body)
        self._revision += 1

    def accept_unless_known(self, statement: Statement) -> bool:
        """Take a statement that somebody handed over, unless the book knows better; return whether it was taken.

        Raises:
            UncheckedError: The book holds too many statements of this signer, or too many signers.
        """
        try:
            self.accept(statement)
        except VerificationError as error:
            if error.code not in ("STATEMENT_OVERLAP", "STATEMENT_ROLLBACK"):
                raise
            return False
        return True

    def check(
        self, test: OnlineTest, certificate: CertificateId, *, at: datetime, challenge: Challenge | None = None
    ) -> Confirmation:
        """Answer one on-line test of a certificate.

        Raises:
            RevokedError: The statement in force withdraws the certificate, or does not confirm it.
            UncheckedError: No statement answers the test.
        """
        check_aware(at)
        if test.kind is TestKind.ONE_TIME:
            return self._check_answer(test, certificate, at, challenge)
        statement = self._in_force((test.signer.key_id, test.kind), at)
        if statement is None:
            raise UncheckedError(f"no {test.kind.value} of `{test.signer.fingerprint}` in force", code="NO_STATEMENT")
        body = statement.body
        assert isinstance(body, ListStatement)  # noqa: S101 - tracks hold lists only
        listed = certificate in body.certificates
        if listed is (test.kind is TestKind.CRL) or self._taken_away(test, certificate, body):
            raise RevokedError(f"revoked by the {test.kind.value} of `{test.signer.fingerprint}`")
        return Confirmation(body.ends)

    def assured_until(self, test: OnlineTest, certificate: CertificateId, *, at: datetime) -> datetime | None:
        """Tell until when accepted lists keep a certificate good, whatever its issuer does now.

        Lists cannot be superseded early, so the answer runs to the end of the last accepted list that follows without a
        gap and still confirms the certificate. ``None`` for a plain CRL, which has no end of its own.
        """
        end: datetime | None = at
        while True:
            try:
                confirmation = self.check(test, certificate, at=end or at)
            except VerificationError:
                return end
            if confirmation.until is None:
                return None
            end = confirmation.until

    def use(self, nonces: Iterable[bytes], *, until: datetime | None = None) -> None:
        """Spend the answers that a decision relied upon.

        Args:
            nonces: Of the challenges.
            until: When the challenges are over; the nonces need not be remembered longer. ``None``: for ever.
        """
        spent = set(nonces)
        if spent:
            for nonce in spent:
                known = self._spent.get(nonce, until)
                self._spent[nonce] = None if known is None or until is None else max(known, until)
            for key in [key for key in self._answers if key[1] in spent]:
                del self._answers[key]
            self._revision += 1

    def raw_statements(self) -> tuple[bytes, ...]:
        """List the accepted lists as signed bytes, in an order in which they can be accepted again."""
        # Latest first: nothing accepted before then has an earlier interval, whose sequence number would bind it.
        tracks = [statement for track in self._timed.values() for statement in reversed(track)]
        return tuple(statement.raw for statement in (*tracks, *self._plain.values()))

    def plain(self, signer: KeyId, kind: TestKind) -> ListStatement | None:
        """Return the plain list that is held of a signer, if any."""
        held = self._plain.get((signer, kind))
        return held.body if held is not None and isinstance(held.body, ListStatement) else None

    def lists(self, signer: KeyId, kind: TestKind) -> tuple[ListStatement, ...]:
        """List what is held of a signer and kind, timed lists in their order and the plain one last."""
        held = [*self._timed.get((signer, kind), ()), *filter(None, (self._plain.get((signer, kind)),))]
        return tuple(item.body for item in held if isinstance(item.body, ListStatement))

    def serving(self, test: OnlineTest, *, at: datetime) -> Statement | None:
        """Return the statement that answers a test at an instant, if there is one and it is a list."""
        return None if test.kind is TestKind.ONE_TIME else self._in_force((test.signer.key_id, test.kind), at)

    def withdrawing(self, test: OnlineTest) -> Statement | None:
        """Return the plain list beside the timed ones that a test is answered by, which only takes away."""
        return self._plain.get((test.signer.key_id, test.kind))

    @property
    def used_nonces(self) -> frozenset[bytes]:
        """The nonces that were spent, to be kept across restarts."""
        return frozenset(self._spent)

    @property
    def spent(self) -> Mapping[bytes, datetime | None]:
        """The spent nonces with the instants until which they must be remembered."""
        return MappingProxyType(self._spent)

    def forget_before(self, instant: datetime) -> None:
        """Drop timed lists that ended before an instant, but never the newest of a track nor its highest sequence.

        Nonces of challenges that were over by then are dropped as well: nothing answers those any more.
        """
        self._spent = {nonce: until for nonce, until in self._spent.items() if until is None or until >= instant}
        for key, track in self._timed.items():
            over = [statement for statement in track[:-1] if _ends(statement) <= instant]
            # A later list must still outnumber what was accepted before it, or an old one could come back.
            highest = max(over, key=_sequence, default=None)
            self._timed[key] = [item for item in track if _ends(item) > instant or item is highest or item is track[-1]]

    def _accept_timed(self, key: _Track, statement: Statement, body: ListStatement) -> None:
        track = self._timed.get(key, [])
        assert body.starts is not None  # noqa: S101 - timed
        index = bisect_right(track, body.starts, key=_starts)
        before = track[index - 1] if index else None
        after = track[index] if index < len(track) else None
        if before is not None and before.digest == statement.digest:
            return  # the same list again changes nothing
        if (before is not None and _ends(before) > body.starts) or (
            after is not None and _starts(after) < _ends(statement)
        ):
            raise VerificationError("the list overlaps one that was accepted before", code="STATEMENT_OVERLAP")
        # A list for the far future must not block the ones before it, so only earlier intervals bind the sequence.
        if any(_sequence(earlier) >= body.sequence for earlier in track[:index]):
            raise VerificationError("a later list with a lower sequence number", code="STATEMENT_ROLLBACK")
        if len(track) >= self._limits.max_statements:
            raise UncheckedError("too many statements of one signer", code="LIMIT_EXCEEDED")
        self._make_room(key, self._timed)
        track.insert(index, statement)
        self._timed[key] = track

    def _accept_answer(self, statement: Statement, body: OneTimeAnswer) -> None:
        if body.nonce in self._spent:
            return  # it serves nothing any more
        if len(self._answers) >= self._limits.max_answers:
            self._answers.popitem(last=False)  # whoever waits for the oldest asks again
        self._answers[statement.signer_id, body.nonce] = statement

    def _make_room(self, key: _Track, tracks: Mapping[_Track, object]) -> None:
        if key not in tracks and len(tracks) >= self._limits.max_signers:
            raise UncheckedError("statements of too many signers", code="LIMIT_EXCEEDED")

    def _accept_plain(self, key: _Track, statement: Statement, body: ListStatement) -> None:
        held = self._plain.get(key)
        if held is not None and _sequence(held) >= body.sequence and held.digest != statement.digest:
            raise VerificationError("a list older than the one held", code="STATEMENT_ROLLBACK")
        self._make_room(key, self._plain)
        self._plain[key] = statement

    def _taken_away(self, test: OnlineTest, certificate: CertificateId, served: ListStatement) -> bool:
        """Tell whether a plain CRL that the list in force does not replace revokes a certificate."""
        plain = self._plain.get((test.signer.key_id, test.kind))
        if plain is None or not isinstance(plain.body, ListStatement) or plain.body.sequence < served.sequence:
            return False
        return certificate in plain.body.certificates

    def _in_force(self, key: _Track, at: datetime) -> Statement | None:
        track = self._timed.get(key, [])
        index = bisect_right(track, at, key=_starts)
        if index and _ends(track[index - 1]) > at:
            return track[index - 1]
        plain = self._plain.get(key)
        # SECURITY: a signer that ever issued timed lists is held to them; an old plain list must not outlive them. Who
        # holds none, or lost them, knows it by the plain list, which says that it only revokes.
        return None if track or plain is None or not _confirms(plain) else plain

    def _check_answer(
        self, test: OnlineTest, certificate: CertificateId, at: datetime, challenge: Challenge | None
    ) -> Confirmation:
        if challenge is None:
            raise UncheckedError("a one-time revalidation needs a challenge", code="NO_STATEMENT")
        answer = self._answers.get((test.signer.key_id, challenge.nonce))
        body = None if answer is None else answer.body
        if not isinstance(body, OneTimeAnswer) or at > challenge.until or challenge.nonce in self._spent:
            raise UncheckedError("no fresh answer to the challenge", code="NO_STATEMENT")
        if len(self._spent) >= self._limits.max_answers:
            # SECURITY: a nonce that could not be remembered as spent would serve twice.
            raise UncheckedError("too many spent nonces", code="LIMIT_EXCEEDED")
        if body.verifier != challenge.verifier or body.request != challenge.request:
            raise UncheckedError("an answer to another question", code="NO_STATEMENT")
        if certificate not in body.certificates:
            raise RevokedError(f"not confirmed by `{test.signer.fingerprint}`")
        return Confirmation(until=at, nonce=challenge.nonce)


def _starts(statement: Statement) -> datetime:
    assert isinstance(statement.body, ListStatement) and statement.body.starts is not None  # noqa: S101, PT018
    return statement.body.starts


def _ends(statement: Statement) -> datetime:
    assert isinstance(statement.body, ListStatement) and statement.body.ends is not None  # noqa: S101, PT018
    return statement.body.ends


def _confirms(statement: Statement) -> bool:
    assert isinstance(statement.body, ListStatement)  # noqa: S101
    return not statement.body.only_revokes


def _sequence(statement: Statement) -> int:
    assert isinstance(statement.body, ListStatement)  # noqa: S101
    return statement.body.sequence
