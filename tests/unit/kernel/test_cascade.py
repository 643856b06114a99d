"""What falls with a role: in order, all of it, nothing else, and again without harm."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from maia.errors import UnavailableError
from maia.kernel import Cascade, CascadeStage, Issued, Standing, plan_cascade, run_cascade
from maia.principals import CertificateId

ROLE, CAPABILITY, SUBSCRIPTION, MEMBERSHIP, REFRESH = CascadeStage


def identity(name: str) -> CertificateId:
    """Name a certificate."""
    return CertificateId(name.encode().ljust(32, b"."))


def issued(name: str, *roles: str, behind: Sequence[str] = ()) -> Issued:
    """Register a certificate."""
    return Issued(
        certificate=identity(name), roles=frozenset(roles), behind=frozenset(identity(item) for item in behind)
    )


def session(name: str, *chains: str, groups: str = "") -> Standing:
    """Let a session stand on chains, each a text of certificate names, and need groups, each a letter."""
    return Standing(
        identity=name,
        chains=tuple(tuple(identity(link) for link in chain.split()) for chain in chains),
        groups=frozenset(letter.encode() for letter in groups),
    )


class Ports:
    """Notes what is asked, and fails where it is told to."""

    def __init__(self, *failing: str) -> None:
        self.calls: list[tuple[str, object]] = []
        self.failing = failing

    def _note(self, what: str, subject: object) -> None:
        if what in self.failing:
            raise UnavailableError("gone", code="PORT_GONE")
        self.calls.append((what, subject))

    def withdraw(self, certificates: Sequence[CertificateId]) -> None:
        """Note it."""
        self._note("withdraw", tuple(certificates))

    def close(self, session: str) -> None:
        """Note it."""
        self._note("close", session)

    def leave(self, group: bytes) -> None:
        """Note it."""
        self._note("leave", group)

    def refresh(self, group: bytes) -> None:
        """Note it."""
        self._note("refresh", group)


def test_a_role_takes_everything_with_it_in_order() -> None:
    """Role, capability, subscription, membership, refresh."""
    plan = plan_cascade(
        ["npTracker"], issued=[issued("cap10", "npTracker")], sessions=[session("smith", "cap12 cap10", groups="pl")]
    )
    assert [stage for stage, _ in plan.steps()] == [
        ROLE, CAPABILITY, SUBSCRIPTION, MEMBERSHIP, MEMBERSHIP, REFRESH, REFRESH,
    ]  # fmt: skip
    ports = Ports()
    report = run_cascade(plan, ports)
    assert report
    assert [what for what, _ in ports.calls] == ["withdraw", "close", "leave", "leave", "refresh", "refresh"]
    assert report.done == list(plan.steps())


KEPT = {
    "another role gives the same certificate": (
        {"standing": ["chief"], "issued": [issued("c", "npTracker", "chief")], "sessions": [session("s", "c")]},
        ((), ()),
    ),
    "another chain stands": (
        {"issued": [issued("c", "npTracker"), issued("d", "chief")], "sessions": [session("s", "a c", "a d")]},
        (("c",), ()),
    ),
    "another client's certificate": (
        {"issued": [issued("c", "npTracker"), issued("d", "clerk")],
         "sessions": [session("s", "c"), session("t", "d")]},
        (("c",), ("s",)),
    ),
    "what was delegated falls too": (
        {"issued": [issued("c", "npTracker"), issued("d", behind="c"), issued("e", behind="d")],
         "sessions": [session("s", "c d e")]},
        (("c", "d", "e"), ("s",)),
    ),
    "what has another delegator stays": (
        {"issued": [issued("c", "npTracker"), issued("x", "chief"), issued("d", behind="cx")],
         "sessions": [session("s", "x d")]},
        (("c",), ()),
    ),
    "a role that gave nothing": ({"issued": [issued("d", "chief")], "sessions": [session("s", "d")]}, ((), ())),
    "withdrawn by hand": (
        {"withdrawn": [identity("d")], "issued": [issued("d", "chief")], "sessions": [session("s", "d")]},
        (("d",), ("s",)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("world, falls", KEPT.values(), ids=KEPT)
def test_what_stands_on_something_else_stays(world: dict[str, object], falls: tuple[object, object]) -> None:
    """Each thing falls with its last support, and not before."""
    plan = plan_cascade(["npTracker"], **world)
    certificates, sessions = falls
    assert set(plan.certificates) == {identity(name) for name in certificates}
    assert plan.sessions == sessions


def test_a_group_is_left_when_nobody_needs_it_any_more() -> None:
    """Smith and Jones both see plates; only Smith sees places: the place's group is left, the plate's is not."""
    world = {"issued": [issued("c", "npTracker"), issued("d", "clerk")]}
    sessions = [session("smith", "c", groups="pl"), session("jones", "d", groups="p")]
    assert plan_cascade(["npTracker"], sessions=sessions, **world).groups == (b"l",)
    assert plan_cascade(["npTracker", "clerk"], sessions=sessions, **world).groups == (b"l", b"p")


@pytest.mark.parametrize("failing", ["withdraw", "close", "leave", "refresh"])
def test_a_step_that_fails_stops_no_other_and_is_reported(failing: str) -> None:
    """Taking away goes on; the report says what to do again, and again does no harm."""
    plan = plan_cascade(["r"], issued=[issued("c", "r")], sessions=[session("s", "c", groups="g")])
    broken, whole = Ports(failing), Ports()
    report = run_cascade(plan, broken)
    assert not report
    assert [code for _, _, code in report.failed] == ["PORT_GONE"]
    assert {what for what, _ in broken.calls} == {"withdraw", "close", "leave", "refresh"} - {failing}
    assert run_cascade(plan, whole)
    assert len(whole.calls) == 4


def test_nothing_falls_without_a_cause() -> None:
    """No role, no cascade."""
    plan = plan_cascade([], issued=[issued("c", "r")], sessions=[session("s", "c")])
    assert plan == Cascade()
    assert not plan
    assert run_cascade(plan, Ports()).done == []
