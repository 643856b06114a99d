"""Rights beside the policy: given by the domain itself or by an agreement, received, or passed on by a delegate.

Rules kept here: everything given is in the register like what the policy gives, before it is handed out; what was
withdrawn is not given again; what speaks of attributes that are closed to the domain is not given at all; a delegate
reports only what it made itself, from something that it may pass on.
"""

from __future__ import annotations

from datetime import datetime

from maia.access_control.certificates import Entitlement, chain_of, line_of, subject_key
from maia.access_control.lists import sign_due
from maia.access_control.outbox import CERTIFICATE
from maia.access_control.register import Records, Register
from maia.access_control.speech import DomainSpeech
from maia.access_control.values import Entry, Handed
from maia.authority import Tag, check_standing, parse_tag
from maia.errors import DeniedError
from maia.policy import SignedAgreement, giver_bodies, verify_agreement
from maia.principals import (
    Authenticated,
    Authorisation,
    Body,
    Certificate,
    CertificateId,
    Period,
    Subject,
    issue,
    parse_certificate,
    verify_certificate,
)


def grant(
    register: Register,
    subject: Subject,
    tag: Tag,
    *,
    at: datetime,
    delegate: bool,
    until: datetime | None,
    holder: str | None,
) -> Certificate:
    """Issue a right outside the policy, by the domain's own decision.

    Raises:
        DeniedError: It was withdrawn (``WITHDRAWN``), or speaks of what is closed to the domain (``SPEAKS_OF_CLOSED``).
    """
    body = Authorisation(
        issuer=register.key,
        subject=subject,
        delegate=delegate,
        tag=tag.to_sexp(),
        period=Period(at.replace(microsecond=0), until),
        tests=register.settings.online_tests(register.key),
        renew=register.settings.renew,
    )
    DomainSpeech(register, at=at).check([body])
    with register.writing(at) as records:
        certificate = issue(body, register.signer)
        if _is_withdrawn(records, certificate):
            raise DeniedError("exactly this certificate was revoked; issue it a second later", code="WITHDRAWN")
        records.certificates.add([line_of(certificate, at=at, holder=holder)])
        sign_due(register, records, at=at)
    return certificate


def honour(register: Register, signed: SignedAgreement, *, at: datetime) -> Handed:
    """Issue what an agreement gives to another domain's roles and brokers.

    Raises:
        VerificationError: It is not signed by both, or does not count now.
        DeniedError: This domain is not the giver, what it gave was withdrawn, or it speaks of what is closed to it.
    """
    verified = verify_agreement(signed, at=at, statements=register.holdings.statements())
    if verified.agreement.giver.key_id != register.key.key_id:
        raise DeniedError("the agreement gives nothing of this domain's", code="NOT_THE_GIVER")
    bodies = giver_bodies(verified, tests=register.settings.online_tests(register.key))
    DomainSpeech(register, at=at).check(bodies)
    certificates = tuple(issue(body, register.signer) for body in bodies)
    with register.writing(at) as records:
        for certificate in certificates:
            if _is_withdrawn(records, certificate):
                raise DeniedError("what the agreement gives was revoked; sign a new one", code="WITHDRAWN")
            name = getattr(certificate.body.subject, "parts", ("",))[0]
            records.certificates.add([line_of(certificate, at=at, privilege=f"agreement: {name}")])
        owners = frozenset(known.owner for known in register.holdings.types(at=at).types())
        given = [Entitlement(privilege="", tag=parse_tag(body.tag), owner=owner) for body in bodies for owner in owners]
        sign_due(register, records, at=at)
        chain = chain_of(
            given,
            domain=register.key,
            pool=register.holdings.evidence(),
            book=register.holdings.statements(),
            at=at,
        )
        statements = records.lists.current(at=at)
        records.journal.note("agree", verified.agreement.title, who=None, at=at)
    return Handed(certificates=certificates, chain=chain, statements=statements)


def gain(register: Register, certificate: bytes, *, at: datetime) -> Certificate:
    """Take in a certificate that gives the domain a right; its brokers are to hear of it.

    Raises:
        DeniedError: It is not for this domain.
        SignatureError: Its issuer did not sign it.
    """
    found = verify_certificate(parse_certificate(certificate))
    if not isinstance(found.body, Authorisation) or subject_key(found.body) != register.key.key_id:
        raise DeniedError("the certificate gives this domain nothing", code="NOT_FOR_DOMAIN")
    register.holdings.keep(found)
    with register.writing(at) as records:
        records.outbox.post(CERTIFICATE, register.key.key_id, found.raw)
        records.journal.note("gain", found.certificate_id.hex()[:16], who=None, at=at)
    return found


def report(register: Register, who: Authenticated, certificate: bytes, *, at: datetime) -> None:
    """Enter a delegation that a delegate made from a right of this domain's.

    Raises:
        DeniedError: ``REPORT_REFUSED``: it was not made by ``who``, or from nothing that it may pass on.
        SignatureError: Its issuer did not sign it.
    """
    found = verify_certificate(parse_certificate(certificate))
    with register.writing(at) as records:
        parent = None if found.body.issuer_id != who.key.key_id else _delegated_to(register, records, who, at=at)
        if parent is None or not isinstance(found.body, Authorisation):
            raise DeniedError("nobody gave this delegate something to pass on", code="REPORT_REFUSED")
        records.certificates.add([line_of(found, at=at, parent=parent)])


def entries(register: Register, *, at: datetime) -> tuple[Entry, ...]:
    """List the live certificates, those that were reported included; expired ones are removed."""
    with register.writing(at) as records:
        records.certificates.forget(before=at)
        return _entries(records, at=at)


def look_at_entries(register: Register, *, at: datetime) -> tuple[Entry, ...]:
    """List the live certificates of an instant, which need not be now: nothing ends or is removed for it."""
    with register.reading_rows() as records:
        return _entries(records, at=at)


def _entries(records: Records, *, at: datetime) -> tuple[Entry, ...]:
    return tuple(
        Entry(
            certificate_id=record.certificate_id,
            certificate=record.raw,
            holder=record.holder,
            privilege=record.privilege,
            until=record.until,
            reported=record.parent is not None,
        )
        for record in records.certificates.live(at=at)
    )


def _is_withdrawn(records: Records, certificate: Certificate) -> bool:
    known = records.certificates.find(certificate.certificate_id)
    return known is not None and known.withdrawn is not None


def _delegated_to(register: Register, records: Records, who: Authenticated, *, at: datetime) -> CertificateId | None:
    """Find something live that a principal may pass on; what was given by hand enters the register with it."""
    for record in records.certificates.live(at=at):
        if _passes_on(parse_certificate(record.raw).body, who):
            return record.certificate_id
    book = register.holdings.statements()
    for item in register.holdings.evidence():
        if item.body.issuer_id != register.key.key_id or not _passes_on(item.body, who):
            continue
        if check_standing(item.raw, at=at, statements=book)[1] is None:
            by_hand = verify_certificate(item)
            if records.certificates.find(by_hand.certificate_id) is None:
                records.certificates.add([line_of(by_hand, at=at)])
                return by_hand.certificate_id
    return None


def _passes_on(body: Body, who: Authenticated) -> bool:
    return isinstance(body, Authorisation) and body.delegate and subject_key(body) == who.key.key_id
