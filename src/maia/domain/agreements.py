"""Agreements between domains: drafted and signed by the giver, signed by the receiver, then honoured by the giver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maia.access_control import AccessControl
from maia.authority import ListStatement, parse_statement
from maia.domain.access_control import HomeHoldings
from maia.domain.agreement_files import AGREEMENT_SUFFIX, POLICY_FOLDER, read_agreement
from maia.domain.peers.agreed import answer_with_keys, ask_for_keys
from maia.domain.releases import agreed_attributes
from maia.encoding import counted
from maia.errors import NotFoundError, UsageError, VerificationError
from maia.home import Home
from maia.policy import (
    SignedAgreement,
    check_meaning,
    draft_agreement,
    format_agreement,
    sign_agreement,
    verify_agreement,
)
from maia.principals import PublicKey, Signer, parse_certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementState:
    """How an agreement stands after a step.

    Attributes:
        signed: The agreement.
        did: What the step did: ``drafted``, ``signed``, ``issued`` or ``known``.
        ours: Whether this domain is its ``giver`` or its ``receiver``.
        issued: How many certificates were issued.
        groups: How many places in key groups the receiver's broker was given.
        unknown: Whether this home knows none of the types, so that the words could not be compared with the rights.
        at: When.
    """

    signed: SignedAgreement
    did: str
    ours: str
    issued: int = 0
    groups: int = 0
    unknown: bool = False
    at: datetime

    @property
    def signatures(self) -> int:
        """How many of the two have signed."""
        return len(_signers(self.signed))

    @property
    def words(self) -> str:
        """Say what the step did."""
        issued = f"issued {counted(self.issued, 'certificate')}"
        if self.groups:
            issued += f" and gave {counted(self.groups, 'place')} in key groups"
        return {"drafted": "drafted and signed", "issued": issued}.get(self.did, self.did)

    def to_json(self) -> dict[str, object]:
        """Describe it for machines."""
        plan = self.signed.agreement
        return {
            "title": plan.title, "did": self.words, "signatures": self.signatures,
            "giver": plan.giver.raw.hex(), "receiver": plan.receiver.raw.hex(), "ours": self.ours,
            "at": self.at.isoformat(), "rows": [{"role": row.role, "right": row.words} for row in plan.rows],
        }  # fmt: skip


def draft_and_sign(
    home: Home,
    service: AccessControl,
    signer: Signer,
    file: Path,
    *,
    other: PublicKey,
    rows: Sequence[str],
    at: datetime,
) -> AgreementState:
    """Write an agreement with another domain and sign it as its giver.

    Raises:
        UsageError: There is a file already, or no row.
        PolicySyntaxError: A row is none.
    """
    if file.exists():
        raise UsageError(f"`{file}` is there already; agreements are never overwritten", code="AGREEMENT_EXISTS")
    allowed = agreed_attributes(home, home.folder.names.get(other.key_id, other.fingerprint))
    plan = draft_agreement(
        file.stem, service.key, other, "\n".join(rows), HomeHoldings(home).types(at=at), allowed=allowed
    )
    signed = sign_agreement(SignedAgreement(agreement=plan), signer)
    _keep(file, home, signed)
    return AgreementState(signed=signed, did="drafted", ours="giver", at=at)


def advance_agreement(
    home: Home,
    service: AccessControl,
    open_signer: Callable[[], Signer],
    file: Path,
    *,
    at: datetime,
    confirm: Callable[[AgreementState], None],
) -> AgreementState:
    """Sign an agreement that is not signed here, or issue what it gives when both have signed.

    Args:
        home: This domain's home.
        service: This domain's service.
        open_signer: Opens this domain's key, when something is to be signed.
        file: The agreement.
        at: Now.
        confirm: Asks before it is signed, and raises when nobody agrees.

    Raises:
        VerificationError: Its words mean something else here than what it gives.
        UsageError: This domain is no party.
    """
    signed = read_agreement(file)
    if service.key not in (signed.agreement.giver, signed.agreement.receiver):
        raise UsageError("this domain is no party to the agreement", code="AGREEMENT_PARTIES")
    ours, did = "giver" if signed.agreement.giver == service.key else "receiver", "known"
    if service.key.key_id not in _signers(signed):
        catalogue = HomeHoldings(home).types(at=at)
        unknown = not catalogue.types()
        if not unknown:
            check_meaning(signed.agreement, catalogue)
        confirm(AgreementState(signed=signed, did=did, ours=ours, unknown=unknown, at=at))
        signer = open_signer()
        signed, did = sign_agreement(signed, signer), "signed"
        if ours == "receiver":
            ask_for_keys(home, signer, signed, at=at)
    _keep(file, home, signed)
    try:
        verify_agreement(signed, at=at, statements=home.statements.load())
    except VerificationError as error:
        if error.code != "AGREEMENT_UNSIGNED":
            raise
        return AgreementState(signed=signed, did=did, ours=ours, at=at)
    issued = groups = 0
    if ours == "giver":
        handed = service.honour(signed, at=at)
        for certificate in handed.certificates:
            home.certificates.add(certificate)
        for raw in handed.statements:
            _write(file.with_suffix(f".{_kind(raw)}"), raw)
        issued, did = len(handed.certificates), "issued"
        groups = answer_with_keys(home, open_signer(), signed, handed.certificates, at=at)
    return AgreementState(signed=signed, did=did, ours=ours, issued=issued, groups=groups, at=at)


def _signers(signed: SignedAgreement) -> set[bytes]:
    return {parse_certificate(raw).body.issuer_id for raw in signed.signatures}


def _kind(raw: bytes) -> str:
    body = parse_statement(raw).body
    return body.kind.value if isinstance(body, ListStatement) else "answer"


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no folder for `{path}`", code="NO_FILE") from error


def _keep(file: Path, home: Home, signed: SignedAgreement) -> None:
    """Write the file, and the home's own copy in its policy folder."""
    data = format_agreement(signed).encode()
    folder = home.path / POLICY_FOLDER
    folder.mkdir(exist_ok=True)
    for path in dict.fromkeys((file, folder / f"{file.stem}{AGREEMENT_SUFFIX}")):
        _write(path, data)
