"""What the verbs of the overlay share: a home, whoever proves its key to it, and the keys that sign for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read.files import read_source, write_target
from maia.cli.read.passphrases import passphrase_source
from maia.cli.read.services import Served
from maia.cli.read.signers import open_signer
from maia.cli.show.output import answer, note

if TYPE_CHECKING:
    from maia.domain import ProvenClient
    from maia.principals import Certificate, KeySigner, PublicKey

CredentialFile = Annotated[
    str, typer.Argument(metavar="FILE", help="A credential in XML or JSON; `-` is standard input.")
]
CredentialOut = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write it there: XML where the name ends in .xml, or JSON.")
]


@dataclass(frozen=True, kw_only=True)
class Presenting(Served):
    """As `Served`, for a command for which somebody proves a key."""

    def client(self, name: str) -> ProvenClient:
        """Let a client of the home answer a challenge with its key."""
        from maia.domain import Domain

        with Domain.open(self.home) as domain:
            return domain.prove(name, passphrase=passphrase_source(self.passphrase_file, what=f"`{name}`"))

    def signer_of(self, key: PublicKey) -> KeySigner:
        """Open the private key of an issuer."""
        return open_signer(key, self.folder, self.passphrase_file)

    def credential(self, source: str) -> Certificate:
        """Read a credential, and check its digest and signature."""
        from maia.domain import read_credential

        return read_credential(read_source(source))

    def hand(self, certificate: Certificate, out: Path | None) -> None:
        """Write a credential out, and tell it."""
        import json

        from maia.domain import credential_to_json, credential_to_xml

        text = credential_to_json(certificate)
        if out is not None:
            xml = out.suffix == ".xml"
            write_target(out, (credential_to_xml(certificate) if xml else text).encode())
        answer(
            {"credential": json.loads(text), "id": certificate.certificate_id.hex()}, *text.splitlines(), json=self.json
        )
        note(f"credential {certificate.certificate_id.hex()[:16]}")
