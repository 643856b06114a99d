"""Giving a right by hand, and taking one back by the list that it obeys.

Rules kept here:

- nobody signs what is useless: a right that the issuer cannot pass on (unless it says so openly, ``blanket``), one that
  speaks of attributes closed to the issuer, one that is over before it begins, a condition that cannot be evaluated;
- a right obeys its issuer's lists unless somebody says that it shall be irrevocable, and a list is there when it is
  signed; whoever signs is told the worst case: how long the right may outlive its revocation;
- a revocation takes force at once where it is heard, by a plain list; no timed list that is signed ahead outvotes it;
- what is drafted is not signed: a door shows the draft, asks, and only then opens the private key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from maia.authority import (
    SPEAKS_OF_CLOSED,
    Exposure,
    ListStatement,
    RightFinding,
    Root,
    can_give,
    check_revocable,
    exposure_window,
    is_nothing,
    lint_right,
    parse_statement,
    verify_statement,
)
from maia.domain.lists import MadeList, assure_list, known_series, make_list, own_register
from maia.domain.register import in_register
from maia.domain.right_findings import find_useless
from maia.encoding import html_table
from maia.errors import DeniedError, NotFoundError, UsageError
from maia.home import Folder, providers, words
from maia.policy import compile_condition
from maia.principals import (
    Authorisation,
    Body,
    Certificate,
    CertificateId,
    OnlineTest,
    Period,
    Principal,
    PublicKey,
    Signer,
    TestKind,
    UnverifiedCertificate,
    issue,
)

if TYPE_CHECKING:
    from maia.access_control import Revocation

_OPEN = Period(None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantDraft:
    """A right that may be signed.

    Attributes:
        body: What is to be signed.
        ends: When the issuer's own right ends, and with it what it gives.
        findings: What an issuer should know before it signs.
        own_lists: Whether it obeys the issuer's own lists, so that one must be there.
    """

    body: Authorisation
    ends: datetime | None
    findings: tuple[RightFinding, ...]
    own_lists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """A right that was signed and kept.

    Attributes:
        certificate: The capability.
        file: Where the folder keeps it.
        exposure: How long it may outlive its revocation.
        holder: Who received it, as this home names it.
        right: What it gives, in words.
        made: The list of its issuer that was signed for it; nothing where one served already.
        findings: What its issuer should know: why it will serve nobody, or not do what it seems to.
        repeated: Whether the folder held it before, so that nothing was added.
    """

    certificate: Certificate
    file: Path
    exposure: Exposure
    holder: str = ""
    right: str = ""
    made: MadeList | None = None
    findings: tuple[RightFinding, ...] = ()
    repeated: bool = False

    def __str__(self) -> str:
        """Say who received what, by which certificate, and what is odd about it."""
        again = ", as before" if self.repeated else ""
        told = f"{self.holder} may {self.right}, by certificate {_short(self.certificate)}{again}"
        return "; ".join([told, *(f"warning: [{item.code}] {item.message}" for item in self.findings)])

    def __repr__(self) -> str:
        """Say it as `str` does; the octets of a certificate are nothing to read."""
        return f"<granted: {self}>"

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        rows = [("holder", self.holder), ("right", self.right), ("file", str(self.file))]
        rows += [_worst(self.exposure), *(("warning", f"[{item.code}] {item.message}") for item in self.findings)]
        return html_table(f"certificate {_short(self.certificate)}", ("", ""), rows)


def draft_grant(
    folder: Folder,
    issuer: PublicKey,
    right: words.Right,
    *,
    to: Principal,
    at: datetime,
    delegate: bool = False,
    period: Period = _OPEN,
    tests: tuple[OnlineTest, ...] | None = None,
    conditions: Iterable[str] = (),
    renew: str | None = None,
    roots: Sequence[Root] = (),
    blanket: bool = False,
) -> GrantDraft:
    """Check a right that is to be given, and draft its certificate.

    Args:
        folder: Whose certificates and statements prove what the issuer holds.
        issuer: Who gives.
        right: What is given.
        to: Who receives it.
        at: Now.
        delegate: Whether the receiver may pass it on.
        period: When it is valid.
        tests: Statements that it demands; ``None`` for the issuer's own lists, nothing to make it irrevocable.
        conditions: What must hold whenever it is used.
        renew: Where a fresh certificate is asked for.
        roots: Who is trusted with what has no owner in its name.
        blanket: Give it though the issuer holds less.

    Raises:
        DeniedError: The issuer cannot give it (``ISSUER_LACKS_RIGHT``), or its constraints or conditions name
            attributes that are closed to the issuer (``SPEAKS_OF_CLOSED``).
        UsageError: It ends in the past (``ENDS_IN_PAST``), admits nothing (``GIVES_NOTHING``), or nothing says who owns
            it (``NO_OWNER``).
        ConditionSyntaxError: A condition is none; the message says where it stops making sense.
    """
    if period.not_after is not None and period.not_after < at:
        raise UsageError(f"the right would end at {period.not_after.isoformat()}, before now", code="ENDS_IN_PAST")
    if is_nothing(right.tag):
        raise UsageError(
            "the demands of the right contradict each other, so it would give nothing", code="GIVES_NOTHING"
        )
    checked = tuple(conditions)
    if checked:
        facts = providers.read_providers(folder.path / "policy").environment.predicates
        for source in checked:
            compile_condition(source, facts=facts)
    ends = None if blanket else _check_gift(folder, issuer, right, checked, roots, at)
    body = Authorisation(
        issuer=issuer, subject=to, delegate=delegate, tag=right.tag.to_sexp(), period=period,
        tests=(OnlineTest(TestKind.CRL, issuer, ()),) if tests is None else tests, conditions=checked, renew=renew,
    )  # fmt: skip
    unknown = tuple(
        RightFinding("UNKNOWN_UID", f"no known version has an attribute `uid:{uid}`") for uid in right.unknown
    )
    findings = (*lint_right(body, right.tag), *unknown, *find_useless(folder, right, to, at=at))
    return GrantDraft(body=body, ends=ends, findings=findings, own_lists=tests is None)


def sign_grant(folder: Folder, draft: GrantDraft, signer: Signer, *, at: datetime) -> Granted:
    """Sign a drafted right and keep its certificate; a list that it needs is there before it is.

    What was revoked stays so: the same right, given again, is another certificate, which begins at another second.
    """
    made = assure_list(folder, signer, at=at) if draft.own_lists else None
    certificate = issue_alive(folder, draft.body, signer, at=at)
    repeated = folder.certificates.has(certificate.certificate_id)
    file = folder.certificates.add(certificate)
    exposure = exposure_window(certificate, at=at, statements=folder.book())
    holder, gives = _named(certificate, folder)
    return Granted(
        certificate=certificate, file=file, exposure=exposure, made=made, holder=holder, right=gives,
        findings=draft.findings, repeated=repeated,
    )  # fmt: skip


def issue_alive(folder: Folder, body: Body, signer: Signer, *, at: datetime) -> Certificate:
    """Sign a right or a name, as a certificate that no list revoked: after a revocation it begins at another second."""
    signers = [test.signer for test in body.tests if test.kind is TestKind.CRL and isinstance(test.signer, PublicKey)]
    dead = frozenset[CertificateId]().union(
        *(known_series(folder, key, TestKind.CRL, at=at).certificates for key in signers)
    )
    certificate, start, step = issue(body, signer), body.period.not_before, timedelta(seconds=1)
    if start is None:
        start, step = at.replace(microsecond=0), -step  # backwards, so that it counts from now on
    while certificate.certificate_id in dead:  # bounded: each turn is one that was revoked
        certificate = issue(replace(body, period=replace(body.period, not_before=start)), signer)
        start += step
    return certificate


def _check_gift(
    folder: Folder,
    issuer: PublicKey,
    right: words.Right,
    conditions: tuple[str, ...],
    roots: Sequence[Root],
    at: datetime,
) -> datetime | None:
    """Refuse a right that the issuer cannot pass on now; else say when its own right ends."""
    if right.owner is None and not roots:
        raise UsageError(f"nothing says who owns: {right.text}", code="NO_OWNER")
    gift = can_give(
        right.tag, issuer=issuer, owner=right.owner, roots=roots, pool=folder.pool(), book=folder.book(), at=at,
        conditions=conditions, versions=right.versions,
    )  # fmt: skip
    if gift.possible:
        return gift.until
    if gift.closed:
        closed = ", ".join(f"`{name}`" for name in words.name_attributes(gift.closed, right.tag.to_sexp(), folder))
        message = f"`{folder.show(issuer.key_id)}` cannot speak of {closed}, which is closed to it"
        raise DeniedError(message, code=SPEAKS_OF_CLOSED)
    missing = "; ".join(words.describe_tag(part.to_sexp(), folder) for part in gift.missing)
    if not is_nothing(gift.held):
        rest = f"it may give: {words.describe_tag(gift.held.to_sexp(), folder)}"
    elif not is_nothing(gift.kept):
        rest = f"it may use but not pass on: {words.describe_tag(gift.kept.to_sexp(), folder)}"
    else:
        rest = "it holds nothing of it"
    raise DeniedError(f"`{folder.show(issuer.key_id)}` cannot give: {missing}; {rest}", code="ISSUER_LACKS_RIGHT")


@dataclass(frozen=True, slots=True, kw_only=True)
class RevocationDraft:
    """The list that would revoke a certificate.

    Attributes:
        certificate: What is revoked.
        signer: The key whose list the certificate obeys.
        body: The list, as it would be now.
        exposure: How long verifiers that do not hear of it may go on accepting the certificate.
        holder: Who loses it, as this home names it.
        right: What is lost, in words.
        told: Whether the log of this home heard of it; ``None`` before it is signed, and where there is no log.
        ended: What the domain's service ended with it; nothing for a certificate that was given by hand.
    """

    certificate: UnverifiedCertificate
    signer: PublicKey
    body: ListStatement
    exposure: Exposure
    holder: str = ""
    right: str = ""
    told: bool | None = None
    ended: Revocation | None = None

    def __str__(self) -> str:
        """Say who loses what, and how long that takes at worst."""
        said = f"{self.holder} loses {self.right}, certificate {_short(self.certificate)}; worst case {self.exposure}"
        if self.ended is None:
            return said
        return f"{said}; ended with it: {len(self.ended.roles)} roles, {len(self.ended.certificates)} certificates"

    def __repr__(self) -> str:
        """Say it as `str` does; the octets of a certificate are nothing to read."""
        return f"<revocation: {self}>"

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        rows = [("holder", self.holder), ("right", self.right), ("list", f"number {self.body.sequence}")]
        caption = f"revocation of certificate {_short(self.certificate)}"
        return html_table(caption, ("", ""), [*rows, _worst(self.exposure)])


def draft_revocation(folder: Folder, certificate: UnverifiedCertificate, *, at: datetime) -> RevocationDraft:
    """Draft the list that revokes a certificate: a plain one of the signer that the certificate names.

    Raises:
        UsageError: No list can revoke it (``IRREVOCABLE``, ``NOT_BY_CRL``), or one did (``REVOKED_BEFORE``).
    """
    check_revocable(certificate)
    signer = _crl_signer(folder, certificate)
    series = known_series(folder, signer, TestKind.CRL, at=at)
    identity = certificate.certificate_id
    if identity in series.certificates:
        raise UsageError(f"`{identity.hex()[:16]}` is on the last list already", code="REVOKED_BEFORE")
    body = series.next(frozenset((identity,)), interval=None, at=at)
    exposure = exposure_window(certificate, at=at, statements=folder.book())
    holder, right = _named(certificate, folder)
    return RevocationDraft(
        certificate=certificate, signer=signer, body=body, exposure=exposure, holder=holder, right=right
    )


def sign_revocation(folder: Folder, draft: RevocationDraft, signer: Signer, *, at: datetime) -> MadeList:
    """Revoke what was drafted: durable here first, then told to the log of this home."""
    identity, ends = draft.certificate.certificate_id, draft.certificate.body.period.not_after
    return make_list(folder, signer, TestKind.CRL, at=at, revoke={identity: ends})


def revoke_certificate(
    folder: Folder, text: str, signer_of: Callable[[PublicKey], Signer], *, at: datetime
) -> RevocationDraft:
    """Revoke a certificate: through the register of the home's domain what its service issued, else by a list.

    Args:
        folder: Whose keys, lists and log.
        text: The certificate: the beginning of its id, or its file.
        signer_of: Opens the private key of a list's signer.
        at: Now.

    Raises:
        UsageError: No list can revoke it, or one did.
    """
    named = folder.certificate(text)
    if folder.config is not None and in_register(folder, text):
        return _revoke_in_register(folder, named, signer_of(folder.key(folder.config.domain)), at=at)
    draft = draft_revocation(folder, named, at=at)
    made = sign_revocation(folder, draft, signer_of(draft.signer), at=at)
    return replace(draft, body=made.body, told=made.told)


def _revoke_in_register(
    folder: Folder, certificate: UnverifiedCertificate, signer: Signer, *, at: datetime
) -> RevocationDraft:
    """Revoke what the domain's service issued, with everything that stands on it."""
    identity = certificate.certificate_id
    with own_register(folder, signer) as service:
        if service is None:
            raise NotFoundError("this home has no register", code="NO_CERTIFICATE")
        done = service.revoke(at=at, certificates=[identity])
    if done.statement is None:
        raise UsageError(f"`{identity.hex()[:16]}` is on the last list already", code="REVOKED_BEFORE")
    body = verify_statement(parse_statement(done.statement)).body
    assert isinstance(body, ListStatement)  # noqa: S101 - a register revokes by lists
    exposure = next(item.exposure for item in done.certificates if item.certificate_id == identity)
    holder, right = _named(certificate, folder)
    return RevocationDraft(
        certificate=certificate, signer=signer.public_key, body=body, exposure=exposure, holder=holder, right=right,
        told=done.told, ended=done,
    )  # fmt: skip


def _crl_signer(folder: Folder, certificate: UnverifiedCertificate) -> PublicKey:
    """Find the key whose CRL the certificate obeys."""
    tests = {test.kind: test for test in certificate.body.tests}
    if TestKind.CRL in tests:
        signer = tests[TestKind.CRL].signer
        return (
            signer if isinstance(signer, PublicKey) else folder.key(folder.names.get(signer.key_id, signer.fingerprint))
        )
    if TestKind.REVALIDATION in tests:
        raise UsageError(
            "the certificate obeys a revalidation: leave it out of the next `maia statement revalidation`",
            code="NOT_BY_CRL",
        )
    if TestKind.ONE_TIME in tests:
        raise UsageError(
            "the certificate obeys one-time answers: stop confirming it with `maia statement one-time`",
            code="NOT_BY_CRL",
        )
    raise UsageError("the certificate demands no statement, so no list can revoke it", code="IRREVOCABLE")


def _named(certificate: Certificate | UnverifiedCertificate, folder: Folder) -> tuple[str, str]:
    """Say in the words of a home who holds what by a certificate."""
    body = certificate.body
    right = words.describe_tag(body.tag, folder) if isinstance(body, Authorisation) else f"the name {body.name}"
    return words.show_subject(body.subject, folder), right


def _short(certificate: Certificate | UnverifiedCertificate) -> str:
    return certificate.certificate_id.hex()[:16]


def _worst(exposure: Exposure) -> tuple[str, str]:
    return "counts after a revocation at worst for", str(exposure)
