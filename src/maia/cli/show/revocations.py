"""What a revocation ended, for people and for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maia.access_control import Ended, Revocation


def ended_to_json(ended: Ended) -> dict[str, object]:
    """Describe a certificate that ends, for machines."""
    return {
        "certificate": ended.certificate_id.hex(), "holder": ended.holder, "privilege": ended.privilege,
        "exposure": str(ended.exposure), "reported": ended.reported,
    }  # fmt: skip


def revocation_to_json(revocation: Revocation) -> dict[str, object]:
    """Describe a revocation, for machines."""
    return {
        "roles": list(revocation.roles), "certificates": [ended_to_json(item) for item in revocation.certificates],
        "members": list(revocation.members), "told": revocation.told,
    }  # fmt: skip


def revocation_lines(revocation: Revocation) -> list[str]:
    """Describe a revocation, for people, in the order in which it happens."""
    lines = [f"role         {role}" for role in revocation.roles]
    for item in revocation.certificates:
        what = item.privilege or "granted by hand"
        who = f"{item.holder}: " if item.holder else ""
        lines.append(f"certificate  {item.certificate_id.hex()[:16]}  {who}{what}; worst case {item.exposure}")
    return lines + [f"member       {name}" for name in revocation.members]
