"""Appointment certificates: a fact of the policy, signed for a key, that its holder brings along.

    (cert (issuer <domain>) (subject <key>) (tag (maia-appointment <domain id> <member's name> <fact>)) (valid …))

Rules kept here: it is in the register before it is handed out, and obeys the domain's lists, so that it can be revoked,
and the fact with it; the chain starts at the domain itself; the fact counts for the key that the certificate names and
no other, and until the certificate ends; appointing may be passed on by a certificate that may be delegated.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from maia.access_control.certificates import line_of
from maia.access_control.denied import denies
from maia.access_control.lists import sign_due
from maia.access_control.register import Register
from maia.authority import Request, StatementBook, Verifier, ask
from maia.encoding import Sexp
from maia.errors import DeniedError, UsageError, VerificationError
from maia.policy import Atom, parse_fact
from maia.principals import (
    Authorisation,
    Certificate,
    Period,
    PublicKey,
    issue,
    parse_certificate,
)

_HEAD = b"maia-appointment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Appointment:
    """What an appointment certificate says: under which name, what, and until when."""

    name: str
    fact: Atom
    until: datetime | None


def appointment_tag(domain: PublicKey, name: str, fact: Atom | str) -> Sexp:
    """Write an appointment as the tag of a certificate."""
    text = str(parse_fact(fact) if isinstance(fact, str) else fact)
    return (_HEAD, domain.key_id, name.encode(), text.encode())


def issue_appointment(
    register: Register, subject: PublicKey, name: str, fact: Atom | str, *, at: datetime, until: datetime | None
) -> Certificate:
    """Sign an appointment for a key, which may join with it under a name.

    Raises:
        DeniedError: Exactly this one was revoked: ``WITHDRAWN``.
        UsageError: A denial stands on it: ``APPOINTMENT_DENIES``.
    """
    appointed = parse_fact(fact) if isinstance(fact, str) else fact
    tag = appointment_tag(register.key, name, appointed)
    period = Period(at.replace(microsecond=0), until)
    tests = register.settings.online_tests(register.key)
    body = Authorisation(issuer=register.key, subject=subject, delegate=False, tag=tag, period=period, tests=tests)
    with register.writing(at) as records:
        if denies(register, appointed):
            # SECURITY: whoever it concerns would not bring it along.
            raise UsageError(
                f"`{appointed.name}` denies by the policy in force: record it, and do not hand it out",
                code="APPOINTMENT_DENIES",
            )
        certificate = issue(body, register.signer)
        known = records.certificates.find(certificate.certificate_id)
        if known is not None and known.withdrawn is not None:
            raise DeniedError("exactly this appointment was revoked; issue it a second later", code="WITHDRAWN")
        what = f"appointment: {appointed}"
        records.certificates.add([line_of(certificate, at=at, privilege=what)])
        records.journal.note("appoint", what, who=None, at=at)
        sign_due(register, records, at=at)
    return certificate


def appointment_in(raw: bytes) -> Appointment | None:
    """Read what a certificate of the register appoints, if it is an appointment."""
    if not raw:
        return None
    body = parse_certificate(raw).body
    match body:
        case Authorisation(tag=(head, _, bytes() as name, bytes() as text)) if head == _HEAD:
            return Appointment(name=name.decode(), fact=parse_fact(text.decode()), until=body.period.not_after)
        case _:
            return None


def read_appointment(
    raw: bytes, *, who: PublicKey, domain: PublicKey, book: StatementBook, at: datetime
) -> Appointment:
    """Verify an appointment certificate for a key that was proven.

    Raises:
        VerificationError: It does not prove an appointment of this domain for this key now.
        EncodingError: It is no certificate.
    """
    certificate = parse_certificate(raw)
    match certificate.body:
        case Authorisation(tag=(head, domain_id, bytes() as name, bytes() as text)) if (
            head == _HEAD and domain_id == domain.key_id
        ):
            request = Request(
                wanted=ask(certificate.body.tag).wanted,
                ground=certificate.body.tag,
                owner=domain,
                text="an appointment",
            )
        case _:
            raise VerificationError("not an appointment of this domain", code="NOT_AN_APPOINTMENT")
    Verifier(statements=book).verify(request, principal=who, evidence=[raw], at=at)
    try:
        return Appointment(name=name.decode(), fact=parse_fact(text.decode()), until=certificate.body.period.not_after)
    except UnicodeDecodeError as error:
        raise VerificationError("an appointment that is no text", code="NOT_AN_APPOINTMENT") from error
