"""A proof as one file, for a third party to replay.

    (maia-proof "1" (principal <key>) (request exact|part <tag>) (owner <principal>)? (certificates <bytes> …)
                (statements <bytes> …))

The file proves nothing by itself and is not signed: whoever reads it verifies the certificates and statements in it
anew. Rules kept here: fields stand in this order and no other is read; a request that names no owner is decided from
the roots of the reader, never from the file.
"""

from __future__ import annotations

from dataclasses import dataclass

from maia.authority.decision import Grant
from maia.authority.request import Request
from maia.authority.tags import alternatives, check_ground, parse_tag
from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError
from maia.principals import KeyHash, KeyId, Principal, PublicKey, parse_principal, principal_id

PROOF_LIMITS = SexpLimits(max_bytes=64 << 20, max_depth=64, max_atom=16 << 20)
_HEAD = b"maia-proof"
_VERSION = b"1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofFile:
    """What the file claims, not yet checked."""

    principal: PublicKey | KeyHash
    request: Request
    certificates: tuple[bytes, ...]
    statements: tuple[bytes, ...]


def looks_like_proof(data: bytes) -> bool:
    """Tell a proof from a certificate by its first octets."""
    return data.startswith(b"(10:maia-proof")


def write_proof(grant: Grant, principal: PublicKey | KeyHash, statements: tuple[bytes, ...]) -> bytes:
    """Write the evidence of a grant."""
    request = grant.request
    exact = request.ground is not None
    asked: Sexp = request.ground if request.ground is not None else request.wanted.to_sexp()
    owner: tuple[Sexp, ...] = () if request.owner is None else ((b"owner", request.owner.to_sexp()),)
    return encode((
        _HEAD, _VERSION,
        (b"principal", principal.to_sexp()),
        (b"request", b"exact" if exact else b"part", asked),
        *owner,
        (b"certificates", *(item.raw for item in grant.certificates)),
        (b"statements", *statements),
    ))  # fmt: skip


def read_proof(data: bytes) -> ProofFile:
    """Read a proof, believing nothing.

    Raises:
        EncodingError: The bytes are no proof of this version.
        MalformedError: A key or tag in it is refused.
    """
    match parse_canonical(data, limits=PROOF_LIMITS):
        case (head, version, (b"principal", who), (b"request", mode, asked), *rest) if head == _HEAD:
            if version != _VERSION:
                raise EncodingError("a proof of an unknown version", code="PROOF_VERSION")
        case _:
            raise _not_a_proof()
    owner: Principal | None = None
    match rest:
        case [(b"owner", whose), (b"certificates", *certificates), (b"statements", *statements)]:
            owner = parse_principal(whose)
        case [(b"certificates", *certificates), (b"statements", *statements)]:
            pass
        case _:
            raise _not_a_proof()
    principal = parse_principal(who)
    if not isinstance(principal, (PublicKey, KeyHash)) or mode not in (b"exact", b"part"):
        raise _not_a_proof()
    ground = check_ground(asked) if mode == b"exact" else None
    request = Request(wanted=parse_tag(asked), ground=ground, owner=root_owner(asked, owner))
    return ProofFile(
        principal=principal, request=request, certificates=_strings(certificates), statements=_strings(statements)
    )


def root_owner(asked: Sexp, claimed: Principal | None) -> Principal | None:
    """Return who owns what is asked for: by its name alone, whatever the file claims.

    Raises:
        EncodingError: It claims another owner, or an owner for something that names none.
    """
    # SECURITY: the owner is the root of trust; a file must not choose it. Only the name of the object does.
    named: set[bytes | None] = set()
    for item in alternatives(asked):
        match item:
            case (b"maia-type" | b"maia-network", bytes() as identity, *_):
                named.add(identity)
            case _:
                named.add(None)
    only = named.pop() if len(named) == 1 else None
    if claimed is None:
        return None if only is None or len(only) != 32 else KeyHash(KeyId(only))
    if only is None or principal_id(claimed) != only:
        raise EncodingError("the proof claims an owner that its request does not name", code="PROOF_OWNER")
    return claimed


def _strings(items: list[Sexp]) -> tuple[bytes, ...]:
    found = tuple(item for item in items if isinstance(item, bytes))
    if len(found) != len(items):
        raise _not_a_proof()
    return found


def _not_a_proof() -> EncodingError:
    return EncodingError("not a proof", code="PROOF_SHAPE")
