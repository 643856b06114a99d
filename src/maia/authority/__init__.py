"""Rights and their algebra, chains and proofs, validity: does this evidence prove this right, now?"""

from maia.authority.book import Confirmation, StatementBook
from maia.authority.bounds import Bounds
from maia.authority.budget import Budget, MonotonicClock
from maia.authority.bundles import MAX_BUNDLE, bundle, open_bundle
from maia.authority.condition_attributes import attributes_of
from maia.authority.constraints import Constraint, row_request, rows_tag, value_tag
from maia.authority.decision import STAGES, Decision, Grant, Stage, first_end
from maia.authority.derive import Derived, derive
from maia.authority.exposure import Exposure, check_revocable, exposure_window
from maia.authority.fairness import fairly
from maia.authority.gift import Gift, can_give
from maia.authority.graph import Graph
from maia.authority.hindsight import MAX_BROUGHT, split_evidence
from maia.authority.known_versions import KnownVersions
from maia.authority.limits import DEFAULT_VERIFIER_LIMITS, VerifierLimits
from maia.authority.lint import ONE_TIME_ORIGIN, TRUSTED, UNENFORCEABLE, RightFinding, lint_right
from maia.authority.names import NameClosure
from maia.authority.objects import ObjectDescriptor, ObjectKind, read_object
from maia.authority.overlay_credential import (
    DELEGATE,
    GENERAL_RIGHTS,
    ClientDescriptor,
    ClientKind,
    OverlayCredential,
)
from maia.authority.pool import CertificatePool
from maia.authority.presentation import Presentation, decide_presentation
from maia.authority.proof import Held, Joined, Proof, ProofTree, walk
from maia.authority.proof_file import ProofFile, looks_like_proof, read_proof, write_proof
from maia.authority.renewal import renew
from maia.authority.request import Request, ask, ask_cell, ask_network, ask_type
from maia.authority.rhythm import Rhythm
from maia.authority.rights import (
    MANAGE_PARTS,
    Action,
    CellRight,
    OnViolation,
    cell_rights,
    network_blanket,
    network_right,
    type_blanket,
    type_right,
    uids_tag,
)
from maia.authority.search import Reach, find_proof, reach
from maia.authority.series import Series, first_moments, serving_lists
from maia.authority.signatures import SignatureCache
from maia.authority.speech import SPEAKS_OF_CLOSED, Narrowed, narrow, speaks
from maia.authority.standing import check_standing
from maia.authority.statements import (
    Challenge,
    ListStatement,
    OneTimeAnswer,
    Statement,
    UnverifiedStatement,
    issue_statement,
    parse_statement,
    unsafe_sign_statement,
    verify_statement,
)
from maia.authority.succession import Successions, exchange_of
from maia.authority.tag_forms import EVERYTHING, NOTHING, Tag, is_nothing, one_of
from maia.authority.tags import alternatives, check_ground, covers, intersect, parse_tag, patterns_in, permits, splits
from maia.authority.tuples import (
    FiveTuple,
    FourTuple,
    NameNode,
    ObjectNode,
    Root,
    ThresholdNode,
    describe_node,
    five_tuple,
    four_tuple,
    principal_node,
    reduce_chain,
    reduce_pair,
)
from maia.authority.types import VerifiedEventType, verify_event_type
from maia.authority.verifier import Verifier

__all__ = [
    "DEFAULT_VERIFIER_LIMITS",
    "DELEGATE",
    "EVERYTHING",
    "GENERAL_RIGHTS",
    "MANAGE_PARTS",
    "MAX_BROUGHT",
    "MAX_BUNDLE",
    "NOTHING",
    "ONE_TIME_ORIGIN",
    "SPEAKS_OF_CLOSED",
    "STAGES",
    "TRUSTED",
    "UNENFORCEABLE",
    "Action",
    "Bounds",
    "Budget",
    "CellRight",
    "CertificatePool",
    "Challenge",
    "ClientDescriptor",
    "ClientKind",
    "Confirmation",
    "Constraint",
    "Decision",
    "Derived",
    "Exposure",
    "FiveTuple",
    "FourTuple",
    "Gift",
    "Grant",
    "Graph",
    "Held",
    "Joined",
    "KnownVersions",
    "ListStatement",
    "MonotonicClock",
    "NameClosure",
    "NameNode",
    "Narrowed",
    "ObjectDescriptor",
    "ObjectKind",
    "ObjectNode",
    "OnViolation",
    "OneTimeAnswer",
    "OverlayCredential",
    "Presentation",
    "Proof",
    "ProofFile",
    "ProofTree",
    "Reach",
    "Request",
    "Rhythm",
    "RightFinding",
    "Root",
    "Series",
    "SignatureCache",
    "Stage",
    "Statement",
    "StatementBook",
    "Successions",
    "Tag",
    "ThresholdNode",
    "UnverifiedStatement",
    "VerifiedEventType",
    "Verifier",
    "VerifierLimits",
    "alternatives",
    "ask",
    "ask_cell",
    "ask_network",
    "ask_type",
    "attributes_of",
    "bundle",
    "can_give",
    "cell_rights",
    "check_ground",
    "check_revocable",
    "check_standing",
    "covers",
    "decide_presentation",
    "derive",
    "describe_node",
    "exchange_of",
    "exposure_window",
    "fairly",
    "find_proof",
    "first_end",
    "first_moments",
    "five_tuple",
    "four_tuple",
    "intersect",
    "is_nothing",
    "issue_statement",
    "lint_right",
    "looks_like_proof",
    "narrow",
    "network_blanket",
    "network_right",
    "one_of",
    "open_bundle",
    "parse_statement",
    "parse_tag",
    "patterns_in",
    "permits",
    "principal_node",
    "reach",
    "read_object",
    "read_proof",
    "reduce_chain",
    "reduce_pair",
    "renew",
    "row_request",
    "rows_tag",
    "serving_lists",
    "speaks",
    "split_evidence",
    "splits",
    "type_blanket",
    "type_right",
    "uids_tag",
    "unsafe_sign_statement",
    "value_tag",
    "verify_event_type",
    "verify_statement",
    "walk",
    "write_proof",
]
