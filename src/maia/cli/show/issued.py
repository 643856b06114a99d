"""What was signed: kept in the home, written out when asked, and told."""

from __future__ import annotations

from pathlib import Path

from maia.cli.read.files import write_target
from maia.cli.show.certificates import certificate_to_json
from maia.cli.show.output import note, write_json, write_line
from maia.home import Folder
from maia.principals import Certificate


def tell_issued(
    certificate: Certificate, file: Path, home: Folder, *, out: Path | None, json: bool, more: dict[str, object]
) -> None:
    """Say which certificate was issued and where it is."""
    if out is not None:
        write_target(out, certificate.raw)
    if json:
        write_json({**certificate_to_json(certificate, home), "file": str(file), **more})
    elif str(out) != "-":
        write_line(str(file))
    note(f"issued certificate {certificate.certificate_id.hex()[:16]}")
