"""What falls with a role, and in which order: capability, subscription, key-group membership, refresh.

A monitored condition turned false, so roles fell (rows 12.05, 13.16, 13.17). Rules kept here:

- first a plan, which is pure: what falls is known before anything is touched, and can be shown;
- capabilities fall that were issued for a fallen role and for no role that stands, and every certificate that was
  delegated on their strength alone;
- subscriptions and advertisements fall that have no chain left without a fallen certificate;
- a broker leaves a key group when no subscription or advertisement that stands needs the group, and only then: a key is
  refreshed when membership really changes;
- steps run in order, outside in: nobody is shut out of a group before his certificate is withdrawn. They only take
  away, so a step that fails does not stop the others; it is reported, and running the plan again is harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from maia.errors import MaiaError, UnavailableError
from maia.principals import CertificateId

Chain = tuple[CertificateId, ...]
MAX_FALLEN = 1_000_000
"""Most things that one cascade takes down."""


class CascadeStage(Enum):
    """The order of a cascade."""

    ROLE = "role"
    CAPABILITY = "capability"
    SUBSCRIPTION = "subscription"
    MEMBERSHIP = "membership"
    REFRESH = "refresh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A certificate of the domain's register.

    Attributes:
        certificate: Its identity.
        roles: The roles that it was issued for, any one of which is enough; none for what rests on certificates alone.
        behind: The certificates it was delegated from, any one of which is enough; none for what the domain issued.
    """

    certificate: CertificateId
    roles: frozenset[str] = frozenset()
    behind: frozenset[CertificateId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A subscription or an advertisement: the chains that allow it, and the key groups it needs."""

    identity: str
    chains: tuple[Chain, ...]
    groups: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """What falls, in order.

    Attributes:
        roles: The roles that fell.
        certificates: The certificates to withdraw.
        sessions: The subscriptions and advertisements to close.
        groups: The key groups to leave, each of which is refreshed.
    """

    roles: tuple[str, ...] = ()
    certificates: tuple[CertificateId, ...] = ()
    sessions: tuple[str, ...] = ()
    groups: tuple[bytes, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether anything falls."""
        return bool(self.roles or self.certificates or self.sessions or self.groups)

    def steps(self) -> tuple[tuple[CascadeStage, str | bytes], ...]:
        """List the steps in the order in which they run."""
        return (
            *((CascadeStage.ROLE, role) for role in self.roles),
            *((CascadeStage.CAPABILITY, identity) for identity in self.certificates),
            *((CascadeStage.SUBSCRIPTION, identity) for identity in self.sessions),
            *((CascadeStage.MEMBERSHIP, group) for group in self.groups),
            *((CascadeStage.REFRESH, group) for group in self.groups),
        )


def plan_cascade(
    fallen: Iterable[str],
    *,
    standing: Iterable[str] = (),
    issued: Iterable[Issued] = (),
    withdrawn: Iterable[CertificateId] = (),
    sessions: Iterable[Standing] = (),
) -> Cascade:
    """Plan what falls with some roles, or with certificates that were withdrawn by hand.

    Args:
        fallen: The roles that fell, in the order in which they did.
        standing: The roles that stand.
        issued: The domain's register of live certificates.
        withdrawn: Certificates that are withdrawn whatever their roles.
        sessions: The live subscriptions and advertisements of the domain's broker.

    Raises:
        UnavailableError: More falls than one cascade may take down: ``CASCADE_TOO_LARGE``.

    >>> smith = Issued(certificate=CertificateId(b"c"), roles=frozenset({"npTracker"}))
    >>> seen = Standing(identity="smith", chains=((CertificateId(b"c"),),), groups=frozenset({b"g"}))
    >>> [stage.value for stage, _ in plan_cascade(["npTracker"], issued=[smith], sessions=[seen]).steps()]
    ['role', 'capability', 'subscription', 'membership', 'refresh']
    """
    roles = tuple(dict.fromkeys(fallen))
    up = frozenset(standing) - frozenset(roles)
    register = {item.certificate: item for item in issued}
    gone = _certificates(register, frozenset(roles), up, withdrawn)
    live = tuple(sessions)
    ends = [all(not gone.keys().isdisjoint(chain) for chain in item.chains) for item in live]
    ended = [item for item, over in zip(live, ends, strict=True) if over]
    needed = {group for item, over in zip(live, ends, strict=True) if not over for group in item.groups}
    groups = sorted({group for item in ended for group in item.groups} - needed)
    if len(gone) + len(ended) > MAX_FALLEN:
        raise UnavailableError("more falls than one cascade takes down", code="CASCADE_TOO_LARGE")
    return Cascade(
        roles=roles,
        certificates=tuple(gone),
        sessions=tuple(sorted(item.identity for item in ended)),
        groups=tuple(groups),
    )


def _certificates(
    register: Mapping[CertificateId, Issued],
    fallen: frozenset[str],
    standing: frozenset[str],
    withdrawn: Iterable[CertificateId],
) -> dict[CertificateId, None]:
    """List what falls, each after what it rested on."""
    gone: dict[CertificateId, None] = dict.fromkeys(withdrawn)
    for identity, item in register.items():
        if item.roles & fallen and not item.roles & standing:
            gone[identity] = None
    behind: dict[CertificateId, list[Issued]] = {}
    for item in register.values():
        for identity in item.behind:
            behind.setdefault(identity, []).append(item)
    queue = list(gone)
    while queue:  # bounded: each certificate enters once
        for item in behind.get(queue.pop(), ()):
            if item.certificate not in gone and item.behind <= gone.keys():
                gone[item.certificate] = None
                queue.append(item.certificate)
    return gone


class CascadePorts(Protocol):
    """Where a cascade acts. Each call may be repeated."""

    def withdraw(self, certificates: Sequence[CertificateId]) -> None:
        """Withdraw certificates, so that brokers learn of it at their next micro-batch."""

    def close(self, session: str) -> None:
        """Close a subscription or an advertisement."""

    def leave(self, group: bytes) -> None:
        """Let the domain's broker leave a key group."""

    def refresh(self, group: bytes) -> None:
        """Let the key of a group be refreshed without those who left."""


@dataclass(slots=True)
class CascadeReport:
    """What a cascade did."""

    done: list[tuple[CascadeStage, str | bytes]] = field(default_factory=list)
    failed: list[tuple[CascadeStage, str | bytes, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Tell whether every step was done."""
        return not self.failed


def run_cascade(cascade: Cascade, ports: CascadePorts) -> CascadeReport:
    """Run the steps in order; a step that fails is reported and does not stop the others."""
    report = CascadeReport()
    report.done += [(CascadeStage.ROLE, role) for role in cascade.roles]
    if cascade.certificates:
        failed = _try(report, CascadeStage.CAPABILITY, b"", lambda: ports.withdraw(cascade.certificates))
        if not failed:
            report.done += [(CascadeStage.CAPABILITY, identity) for identity in cascade.certificates]
    for stage, act, subjects in (
        (CascadeStage.SUBSCRIPTION, ports.close, cascade.sessions),
        (CascadeStage.MEMBERSHIP, ports.leave, cascade.groups),
        (CascadeStage.REFRESH, ports.refresh, cascade.groups),
    ):
        for subject in subjects:
            if not _try(report, stage, subject, lambda act=act, subject=subject: act(subject)):  # type: ignore[misc]
                report.done.append((stage, subject))
    return report


def _try(report: CascadeReport, stage: CascadeStage, subject: str | bytes, act: Callable[[], None]) -> bool:
    try:
        act()
    except MaiaError as error:
        report.failed.append((stage, subject, error.code))
        return True
    return False
