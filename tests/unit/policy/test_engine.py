"""The engine: activation, supports, cascades, privileges, limits; each rule with the case in which it refuses."""

from __future__ import annotations

import pytest

from maia.errors import DeniedError, UncheckedError, UsageError
from maia.policy import Atom, EngineLimits, FactKind, PolicyEngine, PolicySyntaxError, Variable, parse_policy


def engine_of(*rules: str, **limits: int) -> PolicyEngine:
    """Make an engine from lines."""
    return PolicyEngine(parse_policy("\n".join(rules)), limits=EngineLimits(**limits))


def active(engine: PolicyEngine) -> list[str]:
    """Show the active roles with their holders."""
    return [str(role) for role in engine.roles()]


TWO_WAYS = ("doctor(self) <- employed(self)*", "doctor(self) <- locum(self)*")


def test_a_role_with_two_supports_stays_when_one_is_lost():
    """Both rules are met at activation; the role falls with the second."""
    engine = engine_of(*TWO_WAYS)
    engine.appoint("employed(ali)")
    engine.appoint("locum(ali)")
    engine.activate("doctor(ali)", principal="ali")
    assert engine.retract("employed(ali)").fallen == ()
    assert active(engine) == ["ali: doctor(ali)"]
    assert [str(role) for role in engine.retract("locum(ali)").fallen] == ["ali: doctor(ali)"]


def test_a_support_that_came_later_keeps_the_role():
    """Whoever could activate at this moment does not lose the role."""
    engine = engine_of(*TWO_WAYS)
    engine.appoint("employed(ali)")
    engine.activate("doctor(ali)", principal="ali")
    engine.appoint("locum(ali)")
    assert engine.retract("employed(ali)").fallen == ()
    assert [str(role) for role in engine.retract("locum(ali)").fallen] == ["ali: doctor(ali)"]


def test_a_fallen_role_must_be_activated_anew():
    """What it stood on comes back, the role does not."""
    engine = engine_of(*TWO_WAYS)
    engine.appoint("employed(ali)")
    engine.activate("doctor(ali)", principal="ali")
    engine.retract("employed(ali)")
    engine.appoint("employed(ali)")
    assert active(engine) == []
    engine.activate("doctor(ali)", principal="ali")
    assert active(engine) == ["ali: doctor(ali)"]


def test_roles_that_only_support_each_other_fall():
    """Also when both were activated again while both were active, so that each is a support of the other."""
    engine = engine_of("a(self) <- seed(self)*", "a(self) <- b(self)*", "b(self) <- a(self)*", "b(self) <- sow(self)*")
    for fact in ("seed(x)", "sow(x)"):
        engine.appoint(fact)
    for role in ("a(x)", "b(x)", "a(x)", "b(x)"):
        engine.activate(role, principal="x")
    engine.retract("seed(x)")
    assert active(engine) == ["x: a(x)", "x: b(x)"]
    assert sorted(map(str, engine.retract("sow(x)").fallen)) == ["x: a(x)", "x: b(x)"]
    assert active(engine) == []


def test_premises_of_two_cases_do_not_add_up():
    """An order of one case and an assignment to another activate nothing, and keep nothing."""
    engine = engine_of("tracker(plate) <- order(case, plate)*, ?assigned(self, case)")
    engine.appoint("order(c1, p)")
    engine.observe("assigned(smith, c2)")
    with pytest.raises(DeniedError, match="ROLE_REFUSED"):
        engine.activate("tracker(p)", principal="smith")
    engine.observe("assigned(smith, c1)")
    engine.activate("tracker(p)", principal="smith")
    engine.appoint("order(c3, p)")
    assert [str(role) for role in engine.retract("order(c1, p)").fallen] == ["smith: tracker(p)"]


@pytest.mark.threat("T72")
def test_exactly_the_monitored_descendants_fall():
    """A chain of roles with one unmonitored link is cut there; the rest falls, each after what it stood on."""
    engine = engine_of(
        "r1(self) <- base(self)*",
        "r2(self) <- r1(self)*",
        "r3(self) <- r2(self)*",
        "kept(self) <- r1(self)",
        "above(self) <- kept(self)*",
        "other(self) <- elsewhere(self)*",
    )
    engine.appoint("base(x)")
    engine.appoint("elsewhere(x)")
    for role in ("r1", "r2", "r3", "kept", "above", "other"):
        engine.activate(f"{role}(x)", principal="x")
    fallen = engine.retract("base(x)").fallen
    assert [role.atom.name for role in fallen] == ["r1", "r2", "r3"]
    assert active(engine) == ["x: above(x)", "x: kept(x)", "x: other(x)"]


def test_a_lost_support_does_not_come_back_by_itself():
    """Its unmonitored premise is gone, so the instance cannot be met again; only the other support counts."""
    engine = engine_of("r(self) <- seen(self), one(self)*", "r(self) <- two(self)*")
    for fact in ("seen(x)", "one(x)", "two(x)"):
        engine.appoint(fact)
    engine.activate("r(x)", principal="x")
    engine.retract("seen(x)")
    engine.retract("one(x)")
    engine.appoint("one(x)")
    assert [str(role) for role in engine.retract("two(x)").fallen] == ["x: r(x)"]


def test_a_support_seen_at_activation_outlives_its_unmonitored_premises():
    """What was not monitored may go, also for the support that is not needed yet."""
    engine = engine_of("r(self) <- seen(self), one(self)*", "r(self) <- two(self)*")
    for fact in ("seen(x)", "one(x)", "two(x)"):
        engine.appoint(fact)
    engine.activate("r(x)", principal="x")
    engine.retract("seen(x)")
    assert engine.retract("two(x)").fallen == ()
    assert active(engine) == ["x: r(x)"]


def test_nobody_leans_on_a_role_of_another_that_does_not_name_its_holder():
    """A nameless prerequisite is the principal's own; one that names its holder may be another's."""
    engine = engine_of(
        "badge <- keycard(self)*",
        "inside(self) <- badge*",
        "doctor(self) <- employed(self)*",
        "pupil(self, d) <- doctor(d)*",
    )
    engine.appoint("keycard(smith)")
    engine.appoint("employed(ali)")
    engine.activate("badge", principal="smith")
    engine.activate("doctor(ali)", principal="ali")
    with pytest.raises(DeniedError):
        engine.activate("inside(jones)", principal="jones")
    engine.activate("pupil(jones, ali)", principal="jones")
    assert [str(role) for role in engine.retract("employed(ali)").fallen] == [
        "ali: doctor(ali)",
        "jones: pupil(jones, ali)",
    ]


def test_each_kind_of_fact_answers_its_own_premises():
    """An appointment is no predicate, a predicate no appointment, and neither is a role."""
    engine = engine_of("r(self) <- p(self)", "s(self) <- ?q(self)", "t(self) <- r(self)")
    engine.observe("p(x)")
    engine.appoint("q(x)")
    engine.appoint("r(x)")
    for role in ("r(x)", "s(x)", "t(x)"):
        with pytest.raises(DeniedError):
            engine.activate(role, principal="x")


def test_retract_takes_back_either_kind_or_the_one_that_is_named():
    """Without a kind both go; a role is given up in another way."""
    engine = engine_of("r(self) <- p(self)*", "s(self) <- ?p(self)*")
    engine.appoint("p(x)")
    engine.observe("p(x)")
    engine.activate("r(x)", principal="x")
    engine.activate("s(x)", principal="x")
    assert [str(role) for role in engine.retract("p(x)", kind=FactKind.ENVIRONMENT).fallen] == ["x: s(x)"]
    assert [str(role) for role in engine.retract("p(x)").fallen] == ["x: r(x)"]
    assert not engine.retract("p(x)").held
    with pytest.raises(UsageError, match="POLICY_KIND"):
        engine.retract("r(x)", kind=FactKind.ROLE)


def test_giving_up_a_role_lets_fall_what_stood_on_it():
    """Deactivation cascades, also to others; the end of a session gives up all."""
    engine = engine_of("doctor(self) <- employed(self)*", "pupil(self, d) <- doctor(d)*")
    engine.appoint("employed(ali)")
    engine.activate("doctor(ali)", principal="ali")
    engine.activate("pupil(jones, ali)", principal="jones")
    assert not engine.deactivate("doctor(ali)", principal="jones").held
    assert len(engine.close("ali")) == 2
    assert active(engine) == []
    assert engine.explain("doctor(ali)", principal="ali") is None


def test_conditions_of_privileges_are_asked_now_and_bind_parameters():
    """A ward that opens gives the privilege for that ward, and takes it when it closes."""
    engine = engine_of("nurse(self) <- employed(self)*", "nurse(n), ?on-ward(n, w) |- read(w, self)")
    engine.appoint("employed(kim)")
    engine.activate("nurse(kim)", principal="kim")
    assert engine.privileges() == ()
    engine.observe("on-ward(kim, w1)")
    engine.observe("on-ward(lee, w2)")
    assert [(who, str(what)) for who, what in engine.privileges()] == [("kim", "read(w1, kim)")]
    decision = engine.decide("read(w1, kim)", principal="kim")
    assert decision.proof is not None
    assert list(decision.proof.lines()) == [
        "kim: read(w1, kim)   by line 2: nurse(n), ?on-ward(n, w) |- read(w, self)",
        "  kim: nurse(kim)   by line 1: nurse(self) <- employed(self)*",
        "    employed(kim)",
        "  on-ward(kim, w1)",
    ]
    assert engine.decide("read(w1, kim)", principal="lee").reason == "NO_PRIVILEGE"
    engine.retract("on-ward(kim, w1)")
    assert not engine.decide("read(w1, kim)", principal="kim")


def test_steps_are_limited_and_a_search_without_end_is_a_refusal():
    """A search for a triangle where there is none stops at the limit; what it did not show is refused."""
    triangle = "e(x, y), e(y, z), e(z, x)"
    engine = engine_of(
        "r(self) <- ok(self)*",
        f"r(self) <- {triangle}",
        f"s(self) <- {triangle}",
        "r(d), ?e(x, y), ?e(y, z), ?e(z, x) |- t(d)",
        steps=100,
        takeover_steps=150,
    )
    engine.appoint("ok(x)")
    for low in range(12):
        for high in range(low + 1, 12):
            engine.appoint(f"e({low}, {high})")
            engine.observe(f"e({low}, {high})")
    with pytest.raises(UncheckedError, match="POLICY_STEPS"):
        engine.activate("s(x)", principal="x")
    engine.activate("r(x)", principal="x")  # one rule is met, so the other need not be searched to its end
    assert engine.decide("t(x)", principal="x").reason == "STEPS_USED_UP"
    with pytest.raises(UncheckedError, match="POLICY_STEPS"):
        engine.privileges()
    assert [str(role) for role in engine.retract("ok(x)").fallen] == ["x: r(x)"]
    assert active(engine) == []


def test_an_engine_that_is_full_takes_nothing_more():
    """Facts and roles are counted together; a refusal changes nothing, and what is there may be said again."""
    engine = engine_of("r(self) <- p(self)*", facts=2)
    engine.appoint("p(x)")
    engine.appoint("p(y)")
    assert not engine.appoint("p(x)")
    with pytest.raises(UsageError, match="POLICY_FACTS"):
        engine.appoint("p(z)")
    with pytest.raises(UsageError, match="POLICY_FACTS"):
        engine.activate("r(x)", principal="x")
    assert active(engine) == []


def test_what_cannot_be_a_fact_is_refused():
    """Variables, empty principals, unbound policies."""
    engine = engine_of("r(self) <- p(self)*")
    with pytest.raises(UsageError, match="POLICY_GROUND"):
        engine.appoint(Atom("p", (Variable("x"),)))
    with pytest.raises(UsageError, match="POLICY_PRINCIPAL"):
        engine.activate("r(x)", principal="")
    with pytest.raises(PolicySyntaxError, match="POLICY_UNBOUND"):
        engine_of("r(x) <- p(self)*")


def test_a_long_chain_falls_at_once_and_explains_itself_within_bounds():
    """Two thousand roles, each on the one before, held by different principals."""
    engine = engine_of("r(self) <- first(self)*", "r(self) <- r(x)*, next(x, self)*")
    engine.appoint("first(n0)")
    for number in range(2000):
        engine.appoint(f"next(n{number}, n{number + 1})")
    for number in range(2001):
        engine.activate(f"r(n{number})", principal=f"n{number}")
    proof = engine.explain("r(n2000)", principal="n2000")
    assert proof is not None
    assert 64 < len(list(proof.lines())) < 200
    assert [role.holder for role in engine.retract("first(n0)").fallen] == [f"n{number}" for number in range(2001)]


def test_a_proof_of_roles_that_share_prerequisites_stays_small():
    """Forty levels, each leaning twice on the one below, would be a tree of 2^40; it is cut, and quickly made."""
    rules = ["r0(self) <- p(self)*", "s0(self) <- p(self)*"]
    for level in range(1, 40):
        rules += [f"{name}{level}(self) <- r{level - 1}(self)*, s{level - 1}(self)*" for name in "rs"]
    engine = engine_of(*rules)
    engine.appoint("p(x)")
    for level in range(40):
        engine.activate(f"r{level}(x)", principal="x")
        engine.activate(f"s{level}(x)", principal="x")
    proof = engine.explain("r39(x)", principal="x")
    assert proof is not None
    assert len(list(proof.lines())) < 1_200
    assert len(engine.retract("p(x)").fallen) == 80


def test_a_takeover_carries_what_stands_on_it():
    """The first of a chain finds another instance; the rest of the chain stays with it."""
    engine = engine_of(
        "a(self) <- p(self)*", "a(self) <- q(self)*", "b(self) <- a(self)*", "c(self) <- b(self)*, a(self)*"
    )
    engine.appoint("p(x)")
    for role in ("a(x)", "b(x)", "c(x)"):
        engine.activate(role, principal="x")
    engine.appoint("q(x)")
    assert engine.retract("p(x)").fallen == ()
    assert [str(role.atom) for role in engine.roles("x")] == ["a(x)", "b(x)", "c(x)"]
    assert len(engine.deactivate("a(x)", principal="x").fallen) == 3
    assert not engine.decide("t", principal="x")


def test_terms_inside_terms_match_as_a_whole_and_in_part():
    """A parameter may be a term; its variables bind like any other."""
    engine = engine_of(
        "r(x) <- p(self, f(x, 'k'))*", "r(x) |- subscribe T(a, b = x)", "r(x) |- 'all'", "r(x) |- list T"
    )
    engine.appoint("p(z, f(v, k))")
    engine.appoint("p(z, f(w, other))")
    engine.appoint("p(z, v)")
    engine.activate("r(v)", principal="z")
    for refused in ("r(w)", "r", "r(f(v, k))"):
        with pytest.raises(DeniedError):
            engine.activate(refused, principal="z")
    assert [str(what) for _, what in engine.privileges("z")] == ["all", "list T", "subscribe T(a, b = 'v')"]
