"""The state of an engine outside it: an engine that was brought back behaves as the one that never stopped."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maia.errors import DeniedError, EncodingError, MaiaError
from maia.policy import (
    Fact,
    FactKind,
    PolicyEngine,
    RoleState,
    dependents,
    ends_of,
    fact_from_bytes,
    fact_to_bytes,
    parse_fact,
    parse_policy,
    restore,
    role_state,
)
from maia.testing import at

RULES = """
a(self) <- x(self)*
a(self) <- y(self)*, z(self)
b(self) <- a(self)*, w(self)
b(self) <- c(self)*
c(self) <- b(self)*
d(self) <- b(self), c(self)*
"""
FACTS = [f"{name}(ali)" for name in "wxyz"]
ROLES = [f"{name}(ali)" for name in "abcd"]
_STEPS = st.lists(
    st.tuples(st.sampled_from(["appoint", "retract"]), st.sampled_from(FACTS))
    | st.tuples(st.sampled_from(["activate", "deactivate"]), st.sampled_from(ROLES)),
    max_size=14,
)


def play(engine: PolicyEngine, steps: list[tuple[str, str]]) -> None:
    """Do what the steps say; what is refused changes nothing."""
    for verb, what in steps:
        if verb == "appoint":
            engine.appoint(what)
        elif verb == "retract":
            engine.retract(what)
        elif verb == "activate":
            try:
                engine.activate(what, principal="ali")
            except DeniedError:
                continue
        else:
            engine.deactivate(what, principal="ali")


def appointed(engine: PolicyEngine) -> list[Fact]:
    """The appointments that hold."""
    facts = (Fact(FactKind.APPOINTMENT, parse_fact(text)) for text in FACTS)
    return [fact for fact in facts if fact in engine._store]


@settings(max_examples=150, deadline=None)
@given(_STEPS, _STEPS)
def test_an_engine_that_was_brought_back_goes_on_as_if_it_had_not_stopped(before, after):
    """Whatever happened before the restart, whatever happens after it leads to the same roles."""
    policy = parse_policy(RULES)
    engine = PolicyEngine(policy)
    play(engine, before)
    states = [RoleState.from_bytes(role_state(engine, role).to_bytes()) for role in engine.roles()]
    copy, fallen = restore(policy, appointed(engine), states)
    assert fallen == ()
    assert copy.roles() == engine.roles()
    play(engine, after)
    play(copy, after)
    assert copy.roles() == engine.roles()


def test_a_rule_that_is_gone_brings_nothing_back():
    """Under another policy a role returns only on rules that are still there, unless it could be activated now."""
    engine = PolicyEngine(parse_policy(RULES))
    play(engine, [("appoint", "x(ali)"), ("activate", "a(ali)")])
    states = [role_state(engine, role) for role in engine.roles()]
    other = parse_policy("a(self) <- x(self)*, w(self)")
    assert [str(role) for role in restore(other, appointed(engine), states).fallen] == ["ali: a(ali)"]
    reworded = parse_policy("a(self) <- x(self)")
    assert restore(reworded, appointed(engine), states).fallen != ()
    assert restore(reworded, appointed(engine), states, anew=True).fallen == ()


def test_a_role_lasts_as_long_as_the_last_of_its_supports():
    """Each support ends with its first fact, monitored or not; a role above it ends with it."""
    engine = PolicyEngine(parse_policy(RULES))
    play(engine, [*(("appoint", fact) for fact in FACTS), ("activate", "a(ali)"), ("activate", "b(ali)")])
    a, b = engine.roles()
    x, y, z, w = (Fact(FactKind.APPOINTMENT, parse_fact(f"{name}(ali)")) for name in "xyzw")
    assert ends_of(engine, a, {x: at(10), y: at(20), z: at(15)}) == at(15)
    assert ends_of(engine, a, {x: at(10)}) is None
    assert ends_of(engine, b, {x: at(10), y: at(20), z: at(15), w: at(12)}) == at(12)
    assert dependents(engine, [x]) == {a, b}


@pytest.mark.parametrize(
    "raw", [b"", b"(4:role)", b"(4:rank3:abc)", b"(4:role(4:role0:1:a))", b"(4:role(3:xxx0:(1:a)))"]
)
def test_octets_that_are_no_state_are_refused(raw):
    """Half a state is none."""
    with pytest.raises(EncodingError):
        RoleState.from_bytes(raw)


@given(st.binary(max_size=64))
def test_any_octets_are_read_or_refused(raw):
    """Nothing but Maia's own errors."""
    for read in (RoleState.from_bytes, fact_from_bytes):
        try:
            read(raw)
        except MaiaError:
            continue


def test_facts_survive_their_octets():
    """Terms inside terms, and words with quotes."""
    fact = Fact(FactKind.ENVIRONMENT, parse_fact("at(ali, place('it''s', 5))"))
    assert fact_from_bytes(fact_to_bytes(fact)) == fact
