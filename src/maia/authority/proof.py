"""Proofs: the certificates that carry a right from a root to a principal, as a tree that anyone can replay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from maia.authority.tuples import FiveTuple, FourTuple, PrincipalNode, Root, ThresholdNode
from maia.principals import CertificateId, KeyId


@dataclass(frozen=True, slots=True)
class Held:
    """A key that holds the right: as itself or through a name, and then passes it on unless it is the principal."""

    node: PrincipalNode
    key: KeyId
    namings: tuple[FourTuple, ...]
    link: FiveTuple | None
    then: ProofTree | None


@dataclass(frozen=True, slots=True)
class Joined:
    """A threshold whose chosen members each pass their share on to the principal."""

    node: ThresholdNode
    branches: tuple[Held, ...]


ProofTree: TypeAlias = "Held | Joined"


@dataclass(frozen=True, slots=True)
class Proof:
    """Why a principal has a right: a root of the verifier and the tree below it."""

    root: Root
    tree: ProofTree

    def certificate_ids(self) -> tuple[CertificateId, ...]:
        """List the certificates, root first, each once."""
        found: dict[CertificateId, None] = {}
        for held in walk(self.tree):
            for naming in held.namings:
                found[naming.source] = None
            if held.link is not None:
                found[held.link.source] = None
        return tuple(found)

    def links(self) -> tuple[FiveTuple, ...]:
        """List the authorisations, root first, each once."""
        found = {held.link.source: held.link for held in walk(self.tree) if held.link is not None}
        return tuple(found.values())


def walk(tree: ProofTree) -> Iterator[Held]:
    """Visit the holders of a proof, root first, branch after branch."""
    stack: list[ProofTree] = [tree]
    while stack:
        item = stack.pop()
        if isinstance(item, Joined):
            stack.extend(reversed(item.branches))
            continue
        yield item
        if item.then is not None:
            stack.append(item.then)
