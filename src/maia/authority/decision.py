"""The answers of a verifier: a grant with its proof, or a denial that says at which stage it failed."""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from datetime import datetime, timedelta
from enum import Enum

from maia.authority.proof import Proof
from maia.authority.request import Request
from maia.authority.tag_forms import Tag
from maia.encoding import format_advanced, html_table
from maia.errors import UsageError, VerificationError
from maia.principals import Certificate, KeyId, Period, fingerprint


class Stage(Enum):
    """The stages of verification, in the order in which they are passed (row 6.02)."""

    AUTHENTICATION = "authentication"
    EVIDENCE = "evidence"
    SIGNATURES = "signatures"
    VALIDITY = "validity"
    TESTS = "tests"
    NAMES = "names"
    REDUCTION = "reduction"
    ROOT = "root"
    REQUEST = "request"


STAGES = tuple(Stage)
_TICK = timedelta(microseconds=1)


class _Seal:
    """Held by `Verifier` alone."""


SEAL = _Seal()


def first_end(period: Period, until: datetime | None) -> datetime | None:
    """Tell the first instant after a period, which holds at its last one, or after statements, which do not."""
    ends = [] if period.not_after is None else [period.not_after + _TICK]
    return min([*ends, *([] if until is None else [until])], default=None)


@dataclass(frozen=True, slots=True)
class Grant:
    """A right that was proven at an instant. Only a `Verifier` makes one.

    Attributes:
        principal: Who has the right.
        request: What was asked.
        proof: The tree of certificates from a root to the principal.
        certificates: The certificates of the proof, verified, root first.
        tag: What the chain as a whole admits, within the request.
        period: When all certificates of the proof are valid.
        at: The instant of the decision.
        until: When the validity statements accepted so far carry the proof no longer (exclusive); ``None`` if they do.
        conditions: Conditions that the caller must evaluate, all of them, before acting on the grant.
        may_delegate: Whether the principal may pass the right on.
    """

    principal: KeyId
    request: Request
    proof: Proof
    certificates: tuple[Certificate, ...]
    tag: Tag
    period: Period
    at: datetime
    until: datetime | None
    conditions: tuple[str, ...]
    may_delegate: bool
    _seal: InitVar[_Seal]

    def __post_init__(self, _seal: _Seal) -> None:
        """Refuse to be made by anything but a verifier, by a copy too."""
        # INVARIANT: a Grant was proven by a Verifier in this process.
        if _seal is not SEAL:
            raise UsageError("only a Verifier makes a Grant")

    def holds_at(self, at: datetime) -> bool:
        """Tell whether the same proof still carries at another instant, statements being as they were."""
        return self.at <= at and self.period.contains(at) and (self.until is None or at < self.until)

    @property
    def ends(self) -> datetime | None:
        """The first instant at which the same proof does not carry any more, statements being as they are."""
        return first_end(self.period, self.until)

    def _repr_html_(self) -> str:
        """Show the grant in a notebook: who may do what, until when, and the certificates that prove it."""
        ends = min((end for end in (self.period.not_after, self.until) if end is not None), default=None)
        rows = [
            ("principal", fingerprint(self.principal)),
            ("asked for", str(self.request)),
            ("granted", format_advanced(self.tag.to_sexp())),
            ("proven at", self.at.isoformat()),
            ("until", "no end" if ends is None else ends.isoformat()),
            ("may delegate", "yes" if self.may_delegate else "no"),
            *(("condition", condition) for condition in self.conditions),
            *(("certificate", certificate.certificate_id.hex()) for certificate in self.certificates),
        ]
        return html_table("grant", ("", ""), rows)


@dataclass(frozen=True, slots=True)
class Decision:
    """Yes or no, with the reason. True in a condition only when allowed."""

    grant: Grant | None
    error: VerificationError | None
    stage: Stage | None

    @property
    def allowed(self) -> bool:
        """Tell whether the right was proven."""
        return self.grant is not None

    def __bool__(self) -> bool:
        """Stand for the answer."""
        return self.allowed

    @property
    def reason(self) -> str | None:
        """The code of the denial."""
        return None if self.error is None else self.error.code

    @property
    def trace(self) -> tuple[tuple[Stage, bool], ...]:
        """The stages passed, in order, up to and including the first that failed."""
        if self.stage is None:
            return tuple((stage, True) for stage in STAGES)
        passed = STAGES[: STAGES.index(self.stage)]
        return (*((stage, True) for stage in passed), (self.stage, False))
