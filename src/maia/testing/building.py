"""Short ways to make certificates and statements; each goes through the real `issue`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from maia.authority import (
    Challenge,
    ListStatement,
    OneTimeAnswer,
    Statement,
    StatementBook,
    Tag,
    issue_statement,
)
from maia.encoding import Sexp, parse_advanced
from maia.errors import UsageError
from maia.principals import (
    ALWAYS,
    Authorisation,
    Certificate,
    KeyHash,
    Naming,
    ObjectHash,
    OnlineTest,
    Period,
    PublicKey,
    Signer,
    Subject,
    TestKind,
    issue,
)
from maia.testing.people import subject_of

Moment: TypeAlias = "int | str | datetime"
Right: TypeAlias = "Tag | Sexp | str"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(moment: Moment) -> datetime:
    """Name an instant: seconds since 1970, or an ISO text that means UTC unless it says otherwise.

    >>> at(10).isoformat(), at("2026-06-01T09:00").isoformat()
    ('1970-01-01T00:00:10+00:00', '2026-06-01T09:00:00+00:00')
    """
    if isinstance(moment, int):
        return _EPOCH + timedelta(seconds=moment)
    instant = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def during(valid: tuple[Moment | None, Moment | None] | None) -> Period:
    """Make a period; ``None`` leaves an end, or both, open."""
    if valid is None:
        return ALWAYS
    start, end = valid
    return Period(None if start is None else at(start), None if end is None else at(end))


def right(of: Right) -> Sexp:
    """Write a right as it stands in a certificate: from a tag, an expression, or the advanced form."""
    if isinstance(of, str):
        return parse_advanced(of)
    return of if isinstance(of, (bytes, tuple)) or not hasattr(of, "to_sexp") else of.to_sexp()


def grant(
    issuer: Signer,
    subject: Signer | Subject,
    of: Right,
    *,
    delegate: bool = False,
    valid: tuple[Moment | None, Moment | None] | None = None,
    tests: Iterable[OnlineTest] = (),
    conditions: Iterable[str] = (),
) -> Certificate:
    """Issue an authorisation.

    >>> from maia.testing import People
    >>> people = People("pito", "met")
    >>> grant(people.pito, people.met, "(ftp read)", delegate=True).body.delegate
    True
    """
    body = Authorisation(
        issuer=issuer.public_key, subject=subject_of(subject), delegate=delegate, tag=right(of), period=during(valid),
        tests=tuple(tests), conditions=tuple(conditions),
    )  # fmt: skip
    return issue(body, issuer)


def naming(
    issuer: Signer,
    name: str,
    subject: Signer | Subject,
    *,
    valid: tuple[Moment | None, Moment | None] | None = None,
    tests: Iterable[OnlineTest] = (),
) -> Certificate:
    """Issue a name certificate: in the issuer's namespace, ``name`` means (also) ``subject``."""
    means = subject_of(subject)
    if isinstance(means, ObjectHash):
        raise UsageError("a name stands for keys")
    body = Naming(issuer=issuer.public_key, name=name, subject=means, period=during(valid), tests=tuple(tests))
    return issue(body, issuer)


def online(kind: TestKind, signer: Signer | PublicKey | KeyHash, *uris: str) -> OnlineTest:
    """Demand a statement of this kind by this key."""
    return OnlineTest(kind, signer.public_key if isinstance(signer, Signer) else signer, uris)


def listing(
    kind: TestKind,
    signer: Signer,
    certificates: Iterable[Certificate] = (),
    *,
    sequence: int = 1,
    valid: tuple[Moment, Moment] | None = None,
) -> Statement:
    """Sign a CRL or a revalidation; without ``valid`` a plain CRL."""
    starts, ends = (None, None) if valid is None else (at(valid[0]), at(valid[1]))
    body = ListStatement(
        kind=kind, signer=signer.public_key, sequence=sequence, starts=starts, ends=ends,
        certificates=frozenset(certificate.certificate_id for certificate in certificates),
    )  # fmt: skip
    return issue_statement(body, signer)


def answer(challenge: Challenge, signer: Signer, certificates: Iterable[Certificate]) -> Statement:
    """Sign the answer to a challenge."""
    body = OneTimeAnswer(
        signer=signer.public_key, nonce=challenge.nonce, verifier=challenge.verifier, request=challenge.request,
        certificates=frozenset(certificate.certificate_id for certificate in certificates),
    )  # fmt: skip
    return issue_statement(body, signer)


def book(*statements: Statement) -> StatementBook:
    """Open a book that accepted these statements, in this order."""
    opened = StatementBook()
    for statement in statements:
        opened.accept(statement)
    return opened
