"""What a session is: a client's advertisement or subscription as it was made, and the chains that allowed it."""

from __future__ import annotations

from dataclasses import dataclass, field

from maia.events import EventType
from maia.filters import TypedFilter
from maia.kernel.clauses import Clause
from maia.principals import CertificateId, PublicKey


@dataclass(frozen=True, slots=True)
class Advertisement:
    """A client's announced intention to publish one version of a type, and the chains that allow it."""

    principal: PublicKey
    event_type: EventType
    chains: tuple[tuple[CertificateId, ...], ...] = ()
    clauses: tuple[Clause, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LiveSubscription:
    """A client's subscription as it was made, and the chains that allowed it."""

    identity: str
    principal: PublicKey
    event_type: EventType
    filter: TypedFilter
    chains: tuple[tuple[CertificateId, ...], ...] = ()
    clauses: tuple[Clause, ...] = field(default=(), compare=False, repr=False)
