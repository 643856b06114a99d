"""Roles as the seeds tell of them: the detective's court order, the referral, the laboratory, the excluded doctor."""

from __future__ import annotations

import pytest

from maia.errors import DeniedError
from maia.policy import PolicyEngine, parse_policy

TRACKING = """
npTracker(plate) <- courtOrder(case, plate)*, detective(self), ?caseAssignment(self, case)*
npTracker(plate) |- subscribe Numberplate(location, timestamp, numberplate = plate)
"""


PLATE = "npTracker('AE05 XYZ')"


RIGHT = "subscribe Numberplate(location, timestamp, numberplate = 'AE05 XYZ')"


PREMISES = {"order": "courtOrder(c1, 'AE05 XYZ')", "detective": "detective(smith)"}


ASSIGNED = "caseAssignment(smith, c1)"


def met(*, without: str = "") -> PolicyEngine:
    """The Met's engine with everything for case c1, except what is named."""
    engine = PolicyEngine(parse_policy(TRACKING))
    for name, fact in PREMISES.items():
        if name != without:
            engine.appoint(fact)
    if without != "assignment":
        engine.observe(ASSIGNED)
    return engine


@pytest.mark.requirement("12.01")
@pytest.mark.parametrize("missing", ["order", "detective", "assignment"])
def test_a_role_needs_all_premises_of_its_rule(missing):
    """Three premises, one false: the role does not become active, and nothing else changes."""
    engine = met(without=missing)
    with pytest.raises(DeniedError):
        engine.activate(PLATE, principal="smith")
    assert engine.roles() == ()
    assert len(met().activate(PLATE, principal="smith").premises) == 3


@pytest.mark.requirement("12.02")
def test_a_privilege_takes_two_steps():
    """All premises of the role hold; without activating it the privilege is refused."""
    engine = met()
    assert not engine.decide(RIGHT, principal="smith")
    engine.activate(PLATE, principal="smith")
    assert engine.decide(RIGHT, principal="smith")


@pytest.mark.requirement("12.03")
def test_any_one_rule_suffices():
    """Of two rules for priv-clinical only the second is met: granted."""
    engine = PolicyEngine(
        parse_policy(
            "treating-doctor(h, self, p) <- assigned(h, self, p)*\n"
            "clinical-researcher(s, self, p) <- enrolled(s, self, p)*\n"
            "treating-doctor(h, d, p) |- priv-clinical(p)\n"
            "clinical-researcher(s, r, p) |- priv-clinical(p)\n"
        )
    )
    engine.appoint("enrolled(s1, chen, patterson)")
    engine.activate("clinical-researcher(s1, chen, patterson)", principal="chen")
    decision = engine.decide("priv-clinical(patterson)", principal="chen")
    assert decision.allowed
    assert decision.proof is not None
    assert decision.proof.line == 4
    assert not engine.decide("priv-clinical(other)", principal="chen")


@pytest.mark.requirement("12.04")
def test_parameters_bind_relationships_and_exclusions():
    """A tracker of one plate does not track another; an excluded doctor is refused alone."""
    engine = met()
    engine.activate(PLATE, principal="smith")
    with pytest.raises(DeniedError):
        engine.activate("npTracker('BX51 ABC')", principal="smith")
    assert not engine.decide(RIGHT.replace("AE05 XYZ", "BX51 ABC"), principal="smith")
    ward = PolicyEngine(parse_policy("treating-doctor(self, p) <- on-ward(self)*, patient(p), ?not-excluded(p, self)*"))
    ward.appoint("patient(patterson)")
    for doctor in ("x", "y"):
        ward.appoint(f"on-ward({doctor})")
    ward.observe("not-excluded(patterson, y)")
    ward.activate("treating-doctor(y, patterson)", principal="y")
    with pytest.raises(DeniedError):
        ward.activate("treating-doctor(x, patterson)", principal="x")
    assert [role.holder for role in ward.roles()] == ["y"]


REFERRAL = """
treating-doctor(h, self, p) <- assigned(h, self, p)*
treating-doctor(h, self, p) <- treating-doctor(_, d, p)*, consultant-doctor(h, self)*, consultant-referral(d, self, p)*
treating-doctor(h, d, p) |- priv-clinical(p)
"""


@pytest.mark.requirement("12.11")
def test_a_referral_hands_the_patient_on_and_no_other():
    """Ali refers Patterson to Brown: Brown's role is active; for another patient it is not. Ali goes, Brown goes."""
    engine = PolicyEngine(parse_policy(REFERRAL))
    for fact in (
        "assigned('RGT01', ali, patterson)",
        "assigned('RGT01', ali, jones)",
        "consultant-doctor('OX', brown)",
        "consultant-referral(ali, brown, patterson)",
    ):
        engine.appoint(fact)
    for patient in ("patterson", "jones"):
        engine.activate(f"treating-doctor('RGT01', ali, {patient})", principal="ali")
    engine.activate("treating-doctor('OX', brown, patterson)", principal="brown")
    with pytest.raises(DeniedError):
        engine.activate("treating-doctor('OX', brown, jones)", principal="brown")
    assert engine.decide("priv-clinical(patterson)", principal="brown")
    assert not engine.decide("priv-clinical(jones)", principal="brown")
    fallen = engine.retract("assigned('RGT01', ali, patterson)").fallen
    assert [role.holder for role in fallen] == ["ali", "brown"]
