"""Drafting, signing and honouring agreements between domains, for `maia domain agree`."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from maia.cli.acs import POLICY, open_domain
from maia.cli.show.output import note, printable, write_line
from maia.errors import NotFoundError, UsageError, VerificationError
from maia.home import Folder

if TYPE_CHECKING:
    from maia.access_control import AccessControl
    from maia.home import Home
    from maia.policy import SignedAgreement


def draft(
    file: Path, other: str, rows: list[str], home: Path, passphrase_file: Path | None, *, at: datetime
) -> dict[str, object]:
    """Write an agreement with another domain and sign it as its giver.

    Raises:
        UsageError: There is a file already, or no row.
        PolicySyntaxError: A row is none.
    """
    from maia.cli.read.signers import open_signer
    from maia.domain import HomeSurroundings
    from maia.policy import SignedAgreement, draft_agreement, sign_agreement

    if file.exists():
        raise UsageError(f"`{file}` is there already; agreements are never overwritten", code="AGREEMENT_EXISTS")
    opened, service = open_domain(home, passphrase_file)
    folder = Folder(home)
    catalogue = HomeSurroundings(opened).types(at=at)
    plan = draft_agreement(file.stem, service.key, folder.key(other), "\n".join(rows), catalogue)
    signed = sign_agreement(SignedAgreement(agreement=plan), open_signer(service.key, folder, passphrase_file))
    _keep(file, opened, signed)
    return _state(signed, service, at=at, did="drafted and signed")


def continue_agreement(
    file: Path, home: Path, passphrase_file: Path | None, *, at: datetime, yes: bool
) -> dict[str, object]:
    """Sign an agreement that is not signed here, or issue what it gives when both have signed.

    Raises:
        VerificationError: Its words mean something else here than what it gives.
        UsageError: This domain is no party, or nobody confirmed.
    """
    from maia.cli.read.signers import open_signer
    from maia.domain import HomeSurroundings, read_agreement
    from maia.policy import check_meaning, sign_agreement, verify_agreement

    opened, service = open_domain(home, passphrase_file)
    signed = read_agreement(file)
    if service.key not in (signed.agreement.giver, signed.agreement.receiver):
        raise UsageError("this domain is no party to the agreement", code="AGREEMENT_PARTIES")
    did = "known"
    if not _has_signed(signed, service):
        catalogue = HomeSurroundings(opened).types(at=at)
        known = catalogue.types()
        if known:
            check_meaning(signed.agreement, catalogue)
        else:
            note("this home knows none of the types: the rights count as they are, not the words")
        for row in signed.agreement.rows:
            note(f"{row.role} |- {row.words}")
        if not yes:
            _confirm(signed.agreement.title)
        signed = sign_agreement(signed, open_signer(service.key, Folder(home), passphrase_file))
        did = "signed"
    _keep(file, opened, signed)
    try:
        verify_agreement(signed, at=at, statements=opened.statements.load())
    except VerificationError as error:
        if error.code != "AGREEMENT_UNSIGNED":
            raise
        return _state(signed, service, at=at, did=did)
    if signed.agreement.giver == service.key:
        handed = service.honour(signed, at=at)
        for certificate in handed.certificates:
            opened.certificates.add(certificate)
        for raw in handed.statements:
            _write(file.with_suffix(f".{_kind(raw)}"), raw)
        did = f"issued {len(handed.certificates)} certificates"
    return _state(signed, service, at=at, did=did)


def show_agreement(state: dict[str, object]) -> None:
    """Describe an agreement for people."""
    rows = state["rows"]
    for row in rows if isinstance(rows, list) else ():
        write_line(printable(f"{row['role']} |- {row['right']}"))
    note(f"{state['title']}: {state['did']}; signed by {state['signatures']} of 2")


def _state(signed: SignedAgreement, service: AccessControl, *, at: datetime, did: str) -> dict[str, object]:
    from maia.principals import parse_certificate

    issuers = {parse_certificate(raw).body.issuer_id for raw in signed.signatures}
    return {
        "title": signed.agreement.title, "did": did, "signatures": len(issuers),
        "giver": signed.agreement.giver.raw.hex(), "receiver": signed.agreement.receiver.raw.hex(),
        "ours": "giver" if signed.agreement.giver == service.key else "receiver", "at": at.isoformat(),
        "rows": [{"role": row.role, "right": row.words} for row in signed.agreement.rows],
    }  # fmt: skip


def _has_signed(signed: SignedAgreement, service: AccessControl) -> bool:
    from maia.principals import parse_certificate

    return any(parse_certificate(raw).body.issuer_id == service.key.key_id for raw in signed.signatures)


def _kind(raw: bytes) -> str:
    from maia.authority import ListStatement, parse_statement

    body = parse_statement(raw).body
    return body.kind.value if isinstance(body, ListStatement) else "answer"


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no folder for `{path}`", code="NO_FILE") from error


def _keep(file: Path, home: Home, signed: SignedAgreement) -> None:
    """Write the file, and the home's own copy in its policy folder."""
    from maia.domain import AGREEMENT_SUFFIX
    from maia.policy import format_agreement

    data = format_agreement(signed).encode()
    folder = home.path / POLICY
    folder.mkdir(exist_ok=True)
    for path in dict.fromkeys((file, folder / f"{file.stem}{AGREEMENT_SUFFIX}")):
        _write(path, data)


def _confirm(title: str) -> None:
    print(f"Sign `{printable(title)}`? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline(64).strip().lower() not in ("y", "yes"):
        raise UsageError("not signed: nobody confirmed it", code="CONFIRMATION_MISSING")
