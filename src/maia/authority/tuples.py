"""Certificates as the tuples that reduction works on, and the reduction of a chain.

Inside this floor a key *is* its identity (`KeyId`), so that a key and its hash cannot be told apart, and a name is a
`NameNode` rooted at a key identity. `FiveTuple` carries rights, `FourTuple` names.

The rule of reduction: ``(I1,S1,D1,A1,V1) + (I2,S2,D2,A2,V2) -> (I1,S2,D2,A1∩A2,V1∩V2)`` when ``S1 = I2``, ``D1``, and
both intersections are non-empty; each of the four conditions has its own error code. What the second tuple adds names
only what the first opens (see `speech`): reduction goes from the trusted issuer outward, and in no other order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from maia.authority.speech import SPEAKS_OF_CLOSED, Narrowed, narrow
from maia.authority.tag_forms import EVERYTHING, Tag, is_nothing
from maia.authority.tags import parse_tag
from maia.encoding import Sexp
from maia.errors import ChainError, ExpiredError, UsageError
from maia.principals import (
    ALWAYS,
    Authorisation,
    Certificate,
    CertificateId,
    KeyHash,
    KeyId,
    Name,
    Naming,
    ObjectHash,
    Period,
    Principal,
    PublicKey,
    Subject,
    UnverifiedCertificate,
    fingerprint,
)


@dataclass(frozen=True, slots=True)
class NameNode:
    """A name rooted at a key identity."""

    base: KeyId
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ThresholdNode:
    """``k`` of these nodes."""

    k: int
    members: tuple[PrincipalNode, ...]


@dataclass(frozen=True, slots=True)
class ObjectNode:
    """A subject that can hold a right but never act on it."""

    digest: bytes


PrincipalNode: TypeAlias = "KeyId | NameNode | ThresholdNode"
Node: TypeAlias = "PrincipalNode | ObjectNode"


@dataclass(frozen=True, slots=True)
class FiveTuple:
    """A right from an issuer to a subject. ``source`` tells where it came from."""

    issuer: KeyId
    subject: Node
    delegate: bool
    tag: Tag
    period: Period
    conditions: tuple[str, ...]
    source: CertificateId


@dataclass(frozen=True, slots=True)
class FourTuple:
    """A meaning of a name in its issuer's namespace."""

    issuer: KeyId
    name: str
    subject: KeyId | NameNode
    period: Period
    source: CertificateId


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """An entry of the verifier's own list: who is trusted with what, without a certificate.

    Roots come from configuration, or from the owner key inside the name of what is asked for; never from evidence.
    """

    subject: Principal
    tag: Tag = EVERYTHING
    delegate: bool = True
    period: Period = ALWAYS

    @property
    def node(self) -> PrincipalNode:
        """The subject as a node."""
        return principal_node(self.subject)


def principal_node(principal: Principal) -> PrincipalNode:
    """Turn a principal into a node: keys and hashes into identities."""
    if isinstance(principal, (PublicKey, KeyHash)):
        return principal.key_id
    if isinstance(principal, Name):
        return NameNode(principal.base.key_id, principal.parts)
    return ThresholdNode(principal.k, tuple(principal_node(member) for member in principal.members))


def subject_node(subject: Subject) -> Node:
    """Turn any subject into a node."""
    return ObjectNode(subject.digest) if isinstance(subject, ObjectHash) else principal_node(subject)


def five_tuple(certificate: Certificate | UnverifiedCertificate, read: Callable[[Sexp], Tag] = parse_tag) -> FiveTuple:
    """Read the right out of an authorisation certificate, its tag with ``read``.

    Raises:
        TagError: Its tag is not one Maia understands.
        UsageError: It is a name certificate.
    """
    body = certificate.body
    if not isinstance(body, Authorisation):
        raise UsageError("a name certificate holds no right")
    tag = read(body.tag)
    return FiveTuple(
        body.issuer_id, subject_node(body.subject), body.delegate, tag, body.period, body.conditions,
        certificate.certificate_id,
    )  # fmt: skip


def four_tuple(certificate: Certificate | UnverifiedCertificate) -> FourTuple:
    """Read the meaning out of a name certificate.

    Raises:
        UsageError: It is an authorisation certificate.
    """
    body = certificate.body
    if not isinstance(body, Naming):
        raise UsageError("an authorisation certificate defines no name")
    subject = principal_node(body.subject)
    assert not isinstance(subject, ThresholdNode)  # noqa: S101 - a Naming refuses it
    return FourTuple(body.issuer_id, body.name, subject, body.period, certificate.certificate_id)


def reduce_pair(first: FiveTuple, second: FiveTuple) -> FiveTuple:
    """Join two tuples by the rule of reduction.

    Raises:
        ChainError: ``BROKEN_CHAIN``, ``DELEGATION_FORBIDDEN``, ``SPEAKS_OF_CLOSED`` or ``EMPTY_AUTHORITY``.
        ExpiredError: ``EMPTY_VALIDITY``: the two periods have no instant in common.
    """
    if first.subject != second.issuer:
        raise ChainError(
            f"`{describe_node(first.subject)}` holds the right, `{describe_node(second.issuer)}` passes it on",
            code="BROKEN_CHAIN",
        )
    if not first.delegate:
        raise ChainError(f"delegation forbidden by `{describe_node(first.issuer)}`", code="DELEGATION_FORBIDDEN")
    heard = narrow(first.tag, second.tag, conditions=second.conditions, known=first.conditions)
    if is_nothing(heard.tag):
        if heard.closed:
            raise speaks_of_closed(second, heard)
        raise ChainError("the rights of the two certificates have nothing in common", code="EMPTY_AUTHORITY")
    period = first.period.intersect(second.period)
    if period is None:
        raise ExpiredError("the two certificates are never valid together", code="EMPTY_VALIDITY")
    conditions = first.conditions + second.conditions
    return FiveTuple(first.issuer, second.subject, second.delegate, heard.tag, period, conditions, second.source)


def speaks_of_closed(link: FiveTuple, heard: Narrowed) -> ChainError:
    """Make the error for a link that names what its issuer does not hold."""
    who, what = describe_node(link.issuer), ", ".join(f"`{uid}`" for uid in heard.closed)
    message = f"`{who}` speaks of attribute {what}, which is closed to it, so its certificate gives nothing"
    return ChainError(message, code=SPEAKS_OF_CLOSED)


def shares_differ(heard: Narrowed) -> ChainError:
    """Make the error for shares of a threshold of which one speaks of what another closes."""
    what = ", ".join(f"`{uid}`" for uid in heard.closed)
    message = f"a share of a threshold speaks of attribute {what}, which another share closes, so they give nothing"
    return ChainError(message, code=SPEAKS_OF_CLOSED)


def reduce_chain(chain: Sequence[FiveTuple]) -> FiveTuple:
    """Reduce a chain, trusted issuer first, to the one tuple it proves.

    Each link may only narrow: rights are intersected, never added. Names must have been resolved before.

    Raises:
        UsageError: The chain is empty.
        ChainError: A link does not follow from the one before it.
        ExpiredError: The links are never valid together.
    """
    if not chain:
        raise UsageError("a chain needs at least one certificate")
    result = chain[0]
    if is_nothing(result.tag):
        raise ChainError("the first certificate grants nothing", code="EMPTY_AUTHORITY")
    for link in chain[1:]:
        result = reduce_pair(result, link)
    return result


def describe_node(node: Node) -> str:
    """Say who a node is, for people.

    >>> describe_node(NameNode(KeyId(bytes(32)), ("brokers",)))
    'aaaa-aaaa-aaaa-aaaa: brokers'
    """
    if isinstance(node, bytes):
        return fingerprint(node)
    if isinstance(node, NameNode):
        return f"{fingerprint(node.base)}: {' '.join(node.parts)}"
    if isinstance(node, ThresholdNode):
        return f"{node.k} of {len(node.members)} ({', '.join(describe_node(member) for member in node.members)})"
    return f"object {node.digest.hex()[:16]}"
