"""What a revocation ended, for people and for machines: who loses what, and by when at the latest."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from maia.cli.read.instants import show_instant
from maia.cli.show.output import printable

if TYPE_CHECKING:
    from maia.access_control import Ended, Revocation
    from maia.authority import Exposure
    from maia.domain import RevocationDraft
    from maia.home import Folder


def ended_to_json(ended: Ended, *, at: datetime) -> dict[str, object]:
    """Describe a certificate that ends, for machines."""
    return {
        "certificate": ended.certificate_id.hex(), "holder": ended.holder, "privilege": ended.privilege,
        "exposure": str(ended.exposure), "by": _by(ended.exposure, at), "reported": ended.reported,
    }  # fmt: skip


def revocation_to_json(revocation: Revocation, *, at: datetime) -> dict[str, object]:
    """Describe a revocation, for machines."""
    return {
        "roles": list(revocation.roles),
        "certificates": [ended_to_json(item, at=at) for item in revocation.certificates],
        "members": list(revocation.members), "told": revocation.told,
    }  # fmt: skip


def revocation_lines(revocation: Revocation, *, at: datetime) -> list[str]:
    """Describe a revocation, for people, in the order in which it happens."""
    lines = [f"role         {role}" for role in revocation.roles]
    for item in revocation.certificates:
        what = item.privilege or "granted by hand"
        who = f"{item.holder}: " if item.holder else ""
        by = _by(item.exposure, at)
        latest = "" if by is None else f", by {by}"
        lines.append(f"certificate  {item.certificate_id.hex()[:16]}  {who}{what}; worst case {item.exposure}{latest}")
    return lines + [f"member       {name}" for name in revocation.members]


def hand_revocation_lines(draft: RevocationDraft, folder: Folder, *, at: datetime) -> list[str]:
    """Describe the revocation of a certificate that was given by hand, for people."""
    lost, by = loss_to_json(draft, folder, at=at), _by(draft.exposure, at)
    latest = "never, where the list is not heard" if by is None else f"by {by} where it is not"
    identity = draft.certificate.certificate_id.hex()[:16]
    return [
        printable(f"{lost['holder']} loses {lost['right']}"),
        f"revokes {identity} at once where the list is heard, {latest}; worst case {draft.exposure}",
    ]


def loss_to_json(draft: RevocationDraft, folder: Folder, *, at: datetime) -> dict[str, object]:
    """Say who loses what by the revocation of a certificate that was given by hand, and by when."""
    from maia.home import words
    from maia.principals import Authorisation

    body = draft.certificate.body
    right = words.describe_tag(body.tag, folder) if isinstance(body, Authorisation) else f"the name {body.name}"
    return {
        "holder": words.show_subject(body.subject, folder), "right": right, "by": _by(draft.exposure, at)
    }  # fmt: skip


def _by(exposure: Exposure, at: datetime) -> str | None:
    return None if exposure.window is None else show_instant(at + exposure.window)
