"""Agreements between two domains: which of the other's roles may read what, signed by both, compiled to rights.

    (agreement (version "1") (title <text>) (giver <key>) (receiver <key>)
               (row <role> <right in words> <right as a tag>) …)

Rules:
    1. A row names a role of the receiver, and a right of the giver over uids. The words beside it are for people; who
       signs compiles them again and refuses an agreement that says one thing and means another.
    2. An agreement counts when both have signed it: each by a certificate for the hash of its canonical octets, with a
       prefix of its own, so that no signature over something else can pass for one. Being certificates, the signatures
       end and are withdrawn as certificates do, and the agreement with them.
    3. For the giver it becomes one certificate a role, to the receiver's name for the holders of that role, which
       nobody may pass on; and one to the receiver's brokers, who must open what their clients read.
    4. For the receiver it becomes names: who has the role active there is given the name, and loses it with the role.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import InitVar, dataclass, replace
from datetime import datetime

from maia.authority import StatementBook, Tag, one_of
from maia.encoding import Sexp, encode
from maia.errors import DeniedError, ExpiredError, MaiaError, MalformedError, UsageError, VerificationError
from maia.policy.catalogue import TypeCatalogue
from maia.policy.issuing import compile_privilege
from maia.policy.known_types import KnownType
from maia.policy.language import parse_policy
from maia.policy.problems import PolicySyntaxError
from maia.policy.rules import AttributeUse, EventRight, privilege_variables
from maia.principals import (
    ALWAYS,
    Authorisation,
    Certificate,
    Name,
    ObjectHash,
    OnlineTest,
    Period,
    PublicKey,
    Signer,
    encode_text,
    issue,
    parse_certificate,
    verify_certificate,
)

BROKERS = "brokers"
"""A domain's name for the group of its brokers."""

MAX_ROWS = 1_000
_PREFIX = b"maia/1 agreement\x00"
_TAG: Sexp = (b"maia-agreement",)
AGREEMENT_VERSION: Sexp = (b"version", b"1")
MAX_SIGNATURES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementRow:
    """One row: a role of the receiver, and what its holders may do, in words and as a right."""

    role: str
    words: str
    tag: Tag

    def to_sexp(self) -> Sexp:
        """Write the row."""
        return (b"row", encode_text(self.role, "a role"), encode_text(self.words, "a right"), self.tag.to_sexp())


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What one domain lets the roles of another read."""

    title: str
    giver: PublicKey
    receiver: PublicKey
    rows: tuple[AgreementRow, ...]

    def __post_init__(self) -> None:
        """Refuse an agreement about nothing, with oneself, or without end."""
        if self.giver.key_id == self.receiver.key_id:
            raise UsageError("an agreement is between two domains", code="AGREEMENT_PARTIES")
        if not 1 <= len(self.rows) <= MAX_ROWS:
            raise UsageError(f"an agreement has 1 to {MAX_ROWS} rows", code="AGREEMENT_ROWS")

    @property
    def roles(self) -> frozenset[str]:
        """The receiver's roles that it speaks of."""
        return frozenset(row.role for row in self.rows)

    @property
    def digest(self) -> bytes:
        """What both sign: a hash that nothing but an agreement has."""
        return hashlib.sha256(_PREFIX + encode(self.to_sexp())).digest()

    def to_sexp(self) -> Sexp:
        """Write the unsigned body."""
        return (
            b"agreement",
            AGREEMENT_VERSION,
            (b"title", encode_text(self.title, "a title")),
            (b"giver", self.giver.to_sexp()),
            (b"receiver", self.receiver.to_sexp()),
            *(row.to_sexp() for row in self.rows),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedAgreement:
    """An agreement with the signatures it has so far; nothing may be concluded from it."""

    agreement: Agreement
    signatures: tuple[bytes, ...] = ()


class _Proof:
    """Held by this module alone."""


_PROOF = _Proof()


@dataclass(frozen=True, slots=True)
class VerifiedAgreement:
    """An agreement that both parties had signed, and had not withdrawn, when it was verified."""

    agreement: Agreement
    period: Period
    _proof: InitVar[_Proof]

    def __post_init__(self, _proof: _Proof) -> None:
        """Refuse to be made by anything but `verify_agreement`."""
        if _proof is not _PROOF:
            raise UsageError("only verify_agreement makes a VerifiedAgreement")


def role_name(role: str) -> str:
    """Give a domain's name for the holders of a role; the name of a member holds no space, so the two never meet.

    >>> role_name("pharmacist")
    'role pharmacist'
    """
    return f"role {role}"


Allowed = Callable[[KnownType], frozenset[str] | None]
"""Tells which attributes of a type a domain's own rules let leave; nothing when they do not speak of it."""


def draft_agreement(
    title: str,
    giver: PublicKey,
    receiver: PublicKey,
    table: str,
    catalogue: TypeCatalogue,
    *,
    allowed: Allowed | None = None,
) -> Agreement:
    r"""Write an agreement from a table, one line a row: ``pharmacist |- subscribe Prescription(drug, dose)``.

    >>> from maia.events import EventType, TypeName, attribute, parse_version
    >>> from maia.principals import KeySigner
    >>> clinic, pharmacy = KeySigner(bytes(32)).public_key, KeySigner(bytes(31) + b"1").public_key
    >>> name = TypeName(clinic, "Prescription", parse_version("1"))
    >>> known = TypeCatalogue([EventType(name=name, attributes=(attribute("drug", 7, "string"),))])
    >>> draft_agreement("2026", clinic, pharmacy, "pharmacist |- subscribe Prescription(drug)", known).roles
    frozenset({'pharmacist'})

    Args:
        title: What people call it.
        giver: The domain whose events they are.
        receiver: The domain whose roles they are.
        table: The rows.
        catalogue: The types that the giver knows.
        allowed: What the giver's own rules let leave; a row gives no more, whatever it says.

    Raises:
        PolicySyntaxError: A line is no row, or gives something that does not exist; with its line.
        DeniedError: The giver's rules let nothing of a row leave: ``RELEASE_FORBIDS``.
    """
    rows = draft_rows(table, catalogue, allowed=allowed)
    return Agreement(title=title, giver=giver, receiver=receiver, rows=rows)


def draft_rows(table: str, catalogue: TypeCatalogue, *, allowed: Allowed | None = None) -> tuple[AgreementRow, ...]:
    """Write the rows of an agreement whose receiver is not known yet.

    >>> draft_rows("", TypeCatalogue())
    ()

    Raises:
        PolicySyntaxError: As `draft_agreement` does.
    """
    policy = parse_policy(table)
    rows: list[AgreementRow] = []
    for rule in policy.rules:
        if rule not in policy.authorisations:
            raise _row_error(rule.line, "a row is `role |- right`")
    for rule in policy.authorisations:
        if rule.role.arguments or rule.conditions or not isinstance(rule.privilege, EventRight):
            raise _row_error(rule.line, "a row is a role without parameters and a right, without conditions")
        if any(True for _ in privilege_variables(rule.privilege)):
            raise _row_error(rule.line, "a row has no variables")
        tag = _compile(rule.privilege, catalogue, rule.line)
        right = rule.privilege if allowed is None else _within(rule.privilege, catalogue, allowed)
        if right != rule.privilege:
            tag = _compile(right, catalogue, rule.line)
        # names of keys are this home's own: the other side reads the same words with its own eyes
        said = replace(right, event_type=catalogue.portable(right.event_type))
        rows.append(AgreementRow(role=rule.role.name, words=str(said), tag=tag))
    return tuple(rows)


def _within(right: EventRight, catalogue: TypeCatalogue, allowed: Allowed) -> EventRight:
    """Cut a right down to what the giver's own rules let leave: the stricter of the two holds."""
    known = catalogue.find(right.event_type)
    most = allowed(known)
    if most is None:
        return right
    asked = right.attributes or tuple(AttributeUse(name=name) for name in sorted(known.attributes))
    left = tuple(use for use in asked if use.name in most)
    # SECURITY: a demand that is cut away would let other rows through.
    if not left or right.bounds or any(use.operator for use in asked if use.name not in most):
        raise DeniedError(
            f"the release rules of this domain do not let `{right}` leave to this domain", code="RELEASE_FORBIDS"
        )
    return right if len(left) == len(asked) else replace(right, attributes=left)


def check_meaning(agreement: Agreement, catalogue: TypeCatalogue) -> None:
    """Refuse an agreement whose words mean something else here than what it gives.

    >>> from maia.authority import type_right
    >>> from maia.principals import KeySigner
    >>> parties = {"giver": KeySigner(bytes(32)).public_key, "receiver": KeySigner(bytes(31) + b"1").public_key}
    >>> row = AgreementRow(role="clerk", words="subscribe Nothing", tag=type_right(parties["giver"]))
    >>> check_meaning(Agreement(title="x", rows=(row,), **parties), TypeCatalogue())
    Traceback (most recent call last):
    maia.errors.VerificationError: [AGREEMENT_MEANING] the row of `clerk` does not mean what it says

    Raises:
        VerificationError: ``AGREEMENT_MEANING``, naming the row.
    """
    for row in agreement.rows:
        try:
            (rule,) = parse_policy(f"{row.role} |- {row.words}").authorisations
            right = compile_privilege(rule.privilege, catalogue)
            means = right is not None and right.tag == row.tag
        except (MaiaError, ValueError):
            means = False
        if not means:
            raise VerificationError(f"the row of `{row.role}` does not mean what it says", code="AGREEMENT_MEANING")


def sign_agreement(
    signed: SignedAgreement, signer: Signer, *, period: Period = ALWAYS, tests: tuple[OnlineTest, ...] = ()
) -> SignedAgreement:
    """Add the signature of one party.

    >>> from maia.authority import type_right
    >>> from maia.principals import KeySigner
    >>> clinic, pharmacy = KeySigner(bytes(32)), KeySigner(bytes(31) + b"1")
    >>> row = AgreementRow(role="pharmacist", words="subscribe T", tag=type_right(clinic.public_key, "T"))
    >>> plan = Agreement(title="x", giver=clinic.public_key, receiver=pharmacy.public_key, rows=(row,))
    >>> len(sign_agreement(SignedAgreement(agreement=plan), clinic).signatures)
    1

    Args:
        signed: The agreement so far.
        signer: The giver or the receiver.
        period: When the signature counts.
        tests: Statements that it demands, so that it can be withdrawn.

    Raises:
        UsageError: The signer is no party.
    """
    agreement = signed.agreement
    if signer.public_key not in (agreement.giver, agreement.receiver):
        raise UsageError("only the two domains sign their agreement", code="AGREEMENT_PARTIES")
    body = Authorisation(
        issuer=signer.public_key,
        subject=ObjectHash(agreement.digest),
        delegate=False,
        tag=_TAG,
        period=period,
        tests=tests,
    )
    return SignedAgreement(agreement=agreement, signatures=(*signed.signatures, issue(body, signer).raw))


def verify_agreement(
    signed: SignedAgreement, *, at: datetime, statements: StatementBook | None = None
) -> VerifiedAgreement:
    """Check that both parties have signed, and that both signatures count now.

    >>> from datetime import UTC
    >>> from maia.authority import type_right
    >>> from maia.principals import KeySigner
    >>> clinic, pharmacy = KeySigner(bytes(32)), KeySigner(bytes(31) + b"1")
    >>> row = AgreementRow(role="pharmacist", words="subscribe T", tag=type_right(clinic.public_key, "T"))
    >>> plan = Agreement(title="x", giver=clinic.public_key, receiver=pharmacy.public_key, rows=(row,))
    >>> half = sign_agreement(SignedAgreement(agreement=plan), clinic)
    >>> verify_agreement(half, at=datetime(2026, 6, 1, tzinfo=UTC))
    Traceback (most recent call last):
    maia.errors.VerificationError: [AGREEMENT_UNSIGNED] `...` has not signed the agreement
    >>> verify_agreement(sign_agreement(half, pharmacy), at=datetime(2026, 6, 1, tzinfo=UTC)).agreement.title
    'x'

    Raises:
        VerificationError: A signature is missing (``AGREEMENT_UNSIGNED``), forged, over, or withdrawn.
    """
    book = StatementBook() if statements is None else statements
    wanted = ObjectHash(signed.agreement.digest)
    period: Period | None = ALWAYS
    for party in (signed.agreement.giver, signed.agreement.receiver):
        mine = [
            found
            for raw in signed.signatures[:MAX_SIGNATURES]
            if (found := verify_certificate(parse_certificate(raw))).body.issuer_id == party.key_id
            and isinstance(found.body, Authorisation)
            and found.body.subject == wanted
            and found.body.tag == _TAG
        ]
        if not mine:
            raise VerificationError(f"`{party.fingerprint}` has not signed the agreement", code="AGREEMENT_UNSIGNED")
        body = _in_force(mine, book, at).body
        period = None if period is None else period.intersect(body.period)
    assert period is not None  # noqa: S101 - both hold at the same instant
    return VerifiedAgreement(signed.agreement, period, _PROOF)


def giver_bodies(verified: VerifiedAgreement, *, tests: tuple[OnlineTest, ...] = ()) -> tuple[Authorisation, ...]:
    """Write what the giver issues: a certificate for each role of the receiver, and one for its brokers.

    >>> from datetime import UTC
    >>> from maia.authority import type_right
    >>> from maia.principals import KeySigner
    >>> clinic, pharmacy = KeySigner(bytes(32)), KeySigner(bytes(31) + b"1")
    >>> row = AgreementRow(role="pharmacist", words="subscribe T", tag=type_right(clinic.public_key, "T"))
    >>> plan = Agreement(title="x", giver=clinic.public_key, receiver=pharmacy.public_key, rows=(row,))
    >>> both = sign_agreement(sign_agreement(SignedAgreement(agreement=plan), clinic), pharmacy)
    >>> [body.subject.parts for body in giver_bodies(verify_agreement(both, at=datetime(2026, 6, 1, tzinfo=UTC)))]
    [('role pharmacist',), ('brokers',)]
    """
    agreement = verified.agreement
    roles: dict[str, list[Tag]] = {}
    for row in agreement.rows:
        roles.setdefault(row.role, []).append(row.tag)
    groups = {role_name(role): tags for role, tags in sorted(roles.items())}
    groups[BROKERS] = [row.tag for row in agreement.rows]
    return tuple(
        Authorisation(
            issuer=agreement.giver,
            subject=Name(agreement.receiver, (name,)),
            delegate=False,
            tag=one_of(tags).to_sexp(),
            period=verified.period,
            tests=tests,
        )
        for name, tags in groups.items()
    )


def _in_force(mine: Iterable[Certificate], book: StatementBook, at: datetime) -> Certificate:
    """Give the first signature that counts, or say why the last one does not."""
    problem = VerificationError("the agreement is not signed", code="AGREEMENT_UNSIGNED")
    for found in mine:
        if not found.body.period.contains(at):
            problem = ExpiredError("a signature of the agreement is outside its period")
            continue
        try:
            for test in found.body.tests:
                book.check(test, found.certificate_id, at=at)
        except VerificationError as error:
            problem = error
            continue
        return found
    raise problem


def _compile(privilege: EventRight, catalogue: TypeCatalogue, line: int) -> Tag:
    try:
        right = compile_privilege(privilege, catalogue)
    except MalformedError as error:
        raise PolicySyntaxError(f"line {line}: {error.message}", code=error.code, line=line) from error
    assert right is not None  # noqa: S101 - a right on an event type always compiles to one
    return right.tag


def _row_error(line: int, message: str) -> PolicySyntaxError:
    return PolicySyntaxError(f"line {line}: {message}", code="AGREEMENT_ROW", line=line)
