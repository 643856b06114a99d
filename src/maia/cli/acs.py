"""The old name of `maia.cli.read.services` and `maia.cli.show.revocations`, until both halves have moved."""

from maia.cli.read.services import open_domain, prove_member
from maia.cli.show.revocations import ended_to_json, revocation_lines, revocation_to_json

__all__ = ["ended_to_json", "open_domain", "prove_member", "revocation_lines", "revocation_to_json"]
