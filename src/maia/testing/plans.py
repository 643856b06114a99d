"""Plans of a home, compiled by a domain that lives for one call; for tests that hold a home and no more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from maia.domain import MAX_EVENTS, Domain, next_stretch, wire_types
from maia.home import Home
from maia.kernel import DeliverPlan, PublishPlan
from maia.log import Commit


def follow(home: Home, *, at: datetime) -> datetime:
    """Bring a home up to date with the notices of its log; return the instant to plan with."""
    with Domain(home) as domain:
        return domain.follow(at=at)


def publish_plan(
    home: Home,
    type_name: str,
    *,
    as_: str,
    version: str | None = None,
    publication: str,
    at: datetime,
    max_events: int = MAX_EVENTS,
) -> PublishPlan:
    """Compile what a client's rows will go through; see `Domain.publish_plan`."""
    with Domain(home) as domain:
        return domain.publish_plan(
            type_name, client=domain.prove(as_), version=version, publication=publication, at=at, max_events=max_events
        )


def deliver_plan(
    home: Home,
    type_name: str,
    *,
    as_: str,
    where: str = "",
    version: str | None = None,
    commits: Sequence[Commit],
    at: datetime,
    history: bool = False,
) -> DeliverPlan:
    """Compile what a client will see of commits; see `Domain.deliver_plan`."""
    with Domain(home) as domain:
        return domain.deliver_plan(
            type_name, client=domain.prove(as_), where=where, version=version, commits=commits, at=at, history=history
        )


def offered(home: Path | str) -> tuple[list[str], list[str]]:
    """Tell which publications the log offers to the readers of a home now, and for what lanes wait, by code."""
    domain = Domain.open(home)
    at = domain.follow()
    found = next_stretch(domain, wire_types(domain, domain.known(at=at)), after={}, at=at)
    return [commit.publication for commit in found.commits], [code for _, code in found.parked]
