"""Appointment certificates: a fact of the policy, signed for a key, that its holder brings along.

    (cert (issuer <domain>) (subject <key>) (tag (maia-appointment <domain id> <member's name> <fact>)) (valid …))

Rules kept here: the chain starts at the domain itself; the fact counts for the key that the certificate names and no
other, and until the certificate ends; appointing may be passed on by a certificate that may be delegated.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from maia.authority import Request, StatementBook, Verifier, ask
from maia.encoding import Sexp
from maia.errors import VerificationError
from maia.policy import Atom, parse_fact
from maia.principals import (
    Authorisation,
    Certificate,
    OnlineTest,
    Period,
    PublicKey,
    Signer,
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
    signer: Signer,
    subject: PublicKey,
    name: str,
    fact: Atom | str,
    *,
    period: Period,
    tests: tuple[OnlineTest, ...] = (),
) -> Certificate:
    """Sign an appointment of the signer's own domain."""
    tag = appointment_tag(signer.public_key, name, fact)
    body = Authorisation(issuer=signer.public_key, subject=subject, delegate=False, tag=tag, period=period, tests=tests)
    return issue(body, signer)


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
