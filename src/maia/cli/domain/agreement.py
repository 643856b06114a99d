"""Agreements on the command line: the domain's key is opened, whoever sits there is asked, the state is shown."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from maia.cli.read.answers import confirm
from maia.cli.read.services import domain_signer, open_domain
from maia.cli.show.output import note, printable, write_line
from maia.domain import AgreementState, advance_agreement, draft_and_sign
from maia.home import Folder


def draft(
    file: Path, other: str, rows: list[str], home: Path, passphrase_file: Path | None, *, at: datetime
) -> AgreementState:
    """Write an agreement with another domain and sign it as its giver."""
    opened, service = open_domain(home, passphrase_file)
    signer, key = domain_signer(opened, passphrase_file), Folder(home).key(other)
    return draft_and_sign(opened, service, signer, file, other=key, rows=rows, at=at)


def continue_agreement(
    file: Path, home: Path, passphrase_file: Path | None, *, at: datetime, yes: bool
) -> AgreementState:
    """Sign an agreement that is not signed here, or issue what it gives when both have signed."""
    opened, service = open_domain(home, passphrase_file)

    def ask(state: AgreementState) -> None:
        if state.unknown:
            note("this home knows none of the types: the rights count as they are, not the words")
        for row in state.signed.agreement.rows:
            note(f"{row.role} |- {row.words}")
        if not yes:
            confirm(f"Sign `{state.signed.agreement.title}`?", otherwise="not signed")

    return advance_agreement(
        opened, service, lambda: domain_signer(opened, passphrase_file), file, at=at, confirm=ask
    )  # fmt: skip


def show_agreement(state: AgreementState) -> None:
    """Describe an agreement for people."""
    for row in state.signed.agreement.rows:
        write_line(printable(f"{row.role} |- {row.words}"))
    note(f"{state.signed.agreement.title}: {state.words}; signed by {state.signatures} of 2")
