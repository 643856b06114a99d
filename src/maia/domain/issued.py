"""What a domain has issued and is in force: its service's register, and what was signed by hand beside it.

Rules kept here: what is over or withdrawn is not listed; what a delegate passed on is listed with who reported it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from maia.access_control import AccessControl
from maia.authority import check_standing
from maia.home import Folder, Home, words
from maia.principals import Authorisation, UnverifiedCertificate, encode_instant, parse_certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A certificate in force that a domain issued, or that stands on one.

    Attributes:
        certificate: The certificate.
        holder: Whom it is for, in the words of the home.
        what: What it gives.
        until: Its last instant, if it has one.
        reporter: Who passed it on and said so; nobody for what the domain itself issued.
    """

    certificate: UnverifiedCertificate
    holder: str
    what: str
    until: datetime | None
    reporter: str | None = None

    def to_json(self) -> dict[str, object]:
        """Write it for machines."""
        return {
            "id": self.certificate.certificate_id.hex(), "holder": self.holder, "what": self.what,
            "until": None if self.until is None else encode_instant(self.until).decode(), "reporter": self.reporter,
        }  # fmt: skip


def issued_certificates(home: Home, service: AccessControl, *, at: datetime) -> tuple[Issued, ...]:
    """List what a domain has issued that is in force, and what delegates reported; the domain's own first.

    Args:
        home: The domain's home.
        service: Its service.
        at: When; nothing is removed from the register for it.
    """
    folder, book = home.folder, home.statements.load()
    found: dict[bytes, Issued] = {}
    for entry in service.register(at=at, look=True):
        item = parse_certificate(entry.certificate)
        reporter = folder.show(item.body.issuer_id) if entry.reported else None
        found[entry.certificate_id] = _told(item, folder, holder=entry.holder, what=entry.privilege, reporter=reporter)
    for item in home.pool():
        by_hand = item.body.issuer_id == service.key.key_id and item.certificate_id not in found
        if by_hand and check_standing(item.raw, at=at, statements=book)[1] is None:
            found[item.certificate_id] = _told(item, folder)
    return tuple(sorted(found.values(), key=lambda item: (item.reporter is not None, item.holder, item.what)))


def _told(
    item: UnverifiedCertificate,
    folder: Folder,
    *,
    holder: str | None = None,
    what: str | None = None,
    reporter: str | None = None,
) -> Issued:
    body = item.body
    gives = words.describe_tag(body.tag, folder) if isinstance(body, Authorisation) else f"the name `{body.name}`"
    return Issued(
        certificate=item, holder=holder or words.show_subject(body.subject, folder), what=what or gives,
        until=body.period.not_after, reporter=reporter,
    )  # fmt: skip
