"""The audit of a home: its journal, reading it, and checking it."""

from __future__ import annotations

from maia.log.audit.check import Break, CheckedAudit, check_audit
from maia.log.audit.entries import NO_ENTRY, row_to_json, rows_of_body
from maia.log.audit.files import read_head
from maia.log.audit.journal import Audit
from maia.log.audit.notes import (
    Checkpoint,
    cosign,
    cosigners,
    origin_of,
    parse_checkpoint,
    signed_lines,
    verify_checkpoint,
)
from maia.log.audit.processes import process_name
from maia.log.audit.proofs import (
    CONSISTENCY,
    INCLUSION,
    AuditProof,
    check_consistency,
    check_inclusion,
    parse_proof,
)
from maia.log.audit.reading import EARLIER_SCHEMA, read_audit, read_waiting, walk_entries
from maia.log.audit.rows import AUDIT_KINDS, FAILED, OK, STOPPED, UNFINISHED, AuditRow, chain_hash
from maia.log.audit.states import EvidenceStates, read_state, state_steps
from maia.log.audit.tree import MerkleTree, leaf_hash, tiles_of

__all__ = [
    "AUDIT_KINDS",
    "CONSISTENCY",
    "EARLIER_SCHEMA",
    "FAILED",
    "INCLUSION",
    "NO_ENTRY",
    "OK",
    "STOPPED",
    "UNFINISHED",
    "Audit",
    "AuditProof",
    "AuditRow",
    "Break",
    "CheckedAudit",
    "Checkpoint",
    "EvidenceStates",
    "MerkleTree",
    "chain_hash",
    "check_audit",
    "check_consistency",
    "check_inclusion",
    "cosign",
    "cosigners",
    "leaf_hash",
    "origin_of",
    "parse_checkpoint",
    "parse_proof",
    "process_name",
    "read_audit",
    "read_head",
    "read_state",
    "read_waiting",
    "row_to_json",
    "rows_of_body",
    "signed_lines",
    "state_steps",
    "tiles_of",
    "verify_checkpoint",
    "walk_entries",
]
