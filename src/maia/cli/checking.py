"""One certificate by itself: does it read, is it signed by its issuer, does it count now?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from maia.authority import StatementBook
from maia.cli.show.certificates import state_text
from maia.errors import ExpiredError, MaiaError
from maia.principals import TestKind, parse_certificate, verify_certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The outcome for one file."""

    name: str
    certificate: str | None
    error: MaiaError | None

    def to_json(self) -> dict[str, object]:
        """Give the outcome for machines."""
        data: dict[str, object] = {"file": self.name, "id": self.certificate, "verified": self.error is None}
        return data if self.error is None else data | {"error": self.error.code, "message": self.error.message}


def check_certificate(name: str, data: bytes, *, at: datetime, book: StatementBook) -> Checked:
    """Check form, signature, period and the statements it demands; one-time tests need a challenge and are left out."""
    identity: str | None = None
    try:
        certificate = verify_certificate(parse_certificate(data))
        identity = certificate.certificate_id.hex()
        state = state_text(certificate.body.period, at)
        if state != "valid":
            raise ExpiredError(state)
        for test in certificate.body.tests:
            if test.kind is not TestKind.ONE_TIME:
                book.check(test, certificate.certificate_id, at=at)
    except MaiaError as error:
        return Checked(name=name, certificate=identity, error=error)
    return Checked(name=name, certificate=identity, error=None)
