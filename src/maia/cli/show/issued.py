"""What was signed: written out when asked, and told."""

from __future__ import annotations

from pathlib import Path

from maia.cli.read.bundles import Signing
from maia.cli.show.certificates import certificate_to_json
from maia.cli.show.output import note, write_json, write_line
from maia.principals import Certificate


def tell_issued(certificate: Certificate, file: Path, signing: Signing, *, more: dict[str, object]) -> None:
    """Say which certificate was issued and where it is."""
    signing.write(certificate.raw)
    if signing.json:
        write_json({**certificate_to_json(certificate, signing.folder), "file": str(file), **more})
    elif not signing.silent:
        write_line(str(file))
    number = certificate.certificate_id.hex()[:16]
    again = f"certificate {number} was issued before; nothing is added"
    note(again if more.get("repeated") else f"issued certificate {number}")
