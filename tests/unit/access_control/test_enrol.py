"""Many members that join and leave together: all of them or nobody, under one list; on both databases."""

from __future__ import annotations

import random

import pytest

from domain_world import DAY, TRACKING, Force
from maia.access_control import Application, Invitation
from maia.errors import DeniedError, MaiaError, NotFoundError, UsageError
from maia.principals import KeySigner

SMITH, JONES, KAY, EVE = (KeySigner(bytes([number]) * 32) for number in (1, 2, 3, 4))
PEOPLE = {"smith": SMITH, "jones": JONES, "kay": KAY}
POLICY = f"{TRACKING}aide(self) <- npTracker(plate)*, aideOf(self)*\n"


@pytest.fixture
def met(database_url):
    """A force whose detectives each track a plate of their own name."""
    force = Force(database_url)
    prepare(force)
    yield force
    force.engine.dispose()


def prepare(force):
    """Put the policy in force, and assign a case to everybody."""
    force.service.apply(POLICY, at=force.now)
    for name in PEOPLE:
        force.service.observe(f"caseAssignment({name}, c1)", at=force.now)


def invitation(name):
    """Bring along what tracking a plate needs."""
    return Invitation(name=name, appointments=(f"detective({name})", f"courtOrder(c1, {name})"))


def application(force, name, code, *, signer=None, roles=None):
    """Apply with a proven key, for the role of tracking."""
    wanted = (f"npTracker({name})",) if roles is None else roles
    return Application(who=force.prove(signer or PEOPLE[name]), invitation=code, roles=wanted)


def join(force, names=tuple(PEOPLE)):
    """Let several join together."""
    codes = force.service.invite_all(map(invitation, names), at=force.now)
    applying = [application(force, name, code) for name, code in zip(names, codes, strict=True)]
    return force.service.enrol_all(applying, at=force.now)


def state(force, service=None):
    """Sum up what a service knows, apart from signatures and orders of events."""
    seen = service or force.service
    return (
        {(item.name, item.key, item.kind, item.gone) for item in seen.members(at=force.now)},
        {str(role) for role in seen.roles(at=force.now)},
        {entry.certificate for entry in seen.register(at=force.now)},
    )


def test_many_join_in_one_call_each_with_its_own_certificates(met):
    """Each gets its name and its plate and nobody else's, in the register, and a restart finds the same."""
    enrolled = join(met)
    assert [item.member.name for item in enrolled] == list(PEOPLE)
    for item in enrolled:
        assert {it.body.subject for it in item.handed.certificates} == {PEOPLE[item.member.name].public_key}
        assert len(item.handed.certificates) == 2
        assert item.handed.chain
        assert item.handed.statements
    handed = {it.raw for item in enrolled for it in item.handed.certificates}
    assert handed <= {entry.certificate for entry in met.service.register(at=met.now)}
    assert state(met, met.open()) == state(met)


def test_enrolment_with_roles_hands_out_what_activation_gives(met):
    """Nothing is left to ask for: the capabilities of the new member are those that it has."""
    (enrolled,) = join(met, ["smith"])
    again = met.service.capabilities(met.prove(SMITH), at=met.now)
    assert again.certificates == enrolled.handed.certificates
    assert again.chain == enrolled.handed.chain


def _wrong_code(force, codes):
    return application(force, "kay", "wrong")


def _same_code(force, codes):
    return application(force, "kay", codes[0])


def _same_key(force, codes):
    return application(force, "kay", codes[2], signer=JONES)


def _no_rule(force, codes):
    return application(force, "kay", codes[2], roles=("npTracker(kay)", "npTracker(nobody)"))


def _nothing_shown(force, codes):
    return Application(who=force.prove(KAY))


def _stranger(force, codes):
    return Application(who=force.prove(KAY), appointment=b"(3:key)")


def _too_many_roles(force, codes):
    return application(force, "kay", codes[2], roles=("npTracker(kay)",) * 101)


REFUSED = {
    "a code that is wrong": (_wrong_code, "INVITATION_REFUSED"),
    "the code of another": (_same_code, "INVITATION_REFUSED"),
    "the key of another": (_same_key, "MEMBER_KEY"),
    "a role that no rule gives": (_no_rule, "ROLE_REFUSED"),
    "nothing to show": (_nothing_shown, "ENROLMENT"),
    "an appointment that is none": (_stranger, None),
    "more roles than there may be": (_too_many_roles, "ENROLMENT"),
}


@pytest.mark.parametrize("last, code", REFUSED.values(), ids=REFUSED)
def test_when_one_is_refused_nobody_joins_and_no_invitation_is_used(met, last, code):
    """Two good applications and a bad one change nothing; the good ones and the one mended join afterwards."""
    codes = met.service.invite_all(map(invitation, PEOPLE), at=met.now)
    good = [application(met, name, it) for name, it in zip(("smith", "jones"), codes[:2], strict=True)]
    before = state(met)
    with pytest.raises(MaiaError) as refusal:
        met.service.enrol_all([*good, last(met, codes)], at=met.now)
    assert code is None or refusal.value.code == code
    assert state(met) == before == state(met, met.open())
    met.service.enrol_all([*good, application(met, "kay", codes[2])], at=met.now)
    assert len(met.service.roles(at=met.now)) == 3


def test_a_code_that_is_too_old_lets_nobody_in(met):
    """Also when the others' codes are open."""
    (old,) = met.service.invite_all([invitation("smith")], at=met.now)
    (new,) = met.service.invite_all([invitation("jones")], at=met.now + DAY)
    later = met.now + DAY + DAY / 2
    proven = {name: met.prove(PEOPLE[name], at=later) for name in ("smith", "jones")}
    applying = [Application(who=proven[name], invitation=code) for name, code in (("jones", new), ("smith", old))]
    with pytest.raises(DeniedError):
        met.service.enrol_all(applying, at=later)
    assert met.service.members(at=later) == ()


NAMES = {
    "a name twice": (["smith", "jones", "smith"], "MEMBER_NAME_TAKEN"),
    "a name that is taken": (["jones", "old"], "MEMBER_NAME_TAKEN"),
    "a name that somebody was invited under": (["jones", "guest"], "MEMBER_NAME_TAKEN"),
    "a name of the domain's own": (["jones", "brokers"], "MEMBER_NAME"),
}


@pytest.mark.parametrize("names, code", NAMES.values(), ids=NAMES)
def test_when_one_name_is_refused_nobody_is_invited(met, names, code):
    """The other names are free afterwards."""
    met.join("old", EVE)
    met.service.invite("guest", at=met.now)
    with pytest.raises(UsageError) as refusal:
        met.service.invite_all((Invitation(name=name) for name in names), at=met.now)
    assert refusal.value.code == code
    assert met.service.invite("jones", at=met.now)


def test_no_call_takes_more_than_a_thousand(met):
    """Whoever sends a stream without end is stopped at the limit."""
    endless = (Invitation(name=f"n{number}") for number in iter(random.random, 2))
    who = met.prove(SMITH)
    for call in (
        lambda: met.service.invite_all(endless, at=met.now),
        lambda: met.service.enrol_all(iter(lambda: Application(who=who), None), at=met.now),
        lambda: met.service.revoke(principals=iter(lambda: "smith", None), at=met.now),
        lambda: met.service.revoke(role="npTracker(x)", principals=["smith", "jones"], at=met.now),
    ):
        with pytest.raises(UsageError) as refusal:
            call()
        assert refusal.value.code == "TOO_MANY_NAMED"


def test_many_leave_under_one_list_and_are_told_once(met):
    """Everything of Smith and Jones ends in one statement and one notice; Kay goes on."""
    enrolled = join(met)
    met.telling.heard.clear()
    done = met.service.revoke(principals=["smith", "jones", "smith"], at=met.now)
    assert done.members == ("smith", "jones")
    assert set(done.roles) == {"smith: npTracker(smith)", "jones: npTracker(jones)"}
    gone = {it.certificate_id for item in enrolled[:2] for it in item.handed.certificates}
    assert {item.certificate_id for item in done.certificates} == gone
    assert met.telling.kinds == ["statement", "withdrawn"]
    assert met.telling.heard[1][1].certificates == gone
    assert {item.holder for item in met.service.register(at=met.now)} == {"kay"}
    assert [str(role) for role in met.service.roles(at=met.now)] == ["kay: npTracker(kay)"]
    assert state(met, met.open()) == state(met)


def test_when_one_is_no_member_nobody_leaves(met):
    """A slip of the pen in a long list withdraws nothing."""
    join(met)
    before = state(met)
    with pytest.raises(NotFoundError):
        met.service.revoke(principals=["smith", "nobody"], at=met.now)
    assert state(met) == before == state(met, met.open())


def test_a_preview_of_many_leaving_changes_nothing(met):
    """It says what the withdrawal then does."""
    join(met)
    before = state(met)
    foreseen = met.service.preview_revocation(principals=["smith", "kay"], at=met.now)
    assert state(met) == before
    done = met.service.revoke(principals=["smith", "kay"], at=met.now)
    assert (done.roles, done.certificates, done.members) == (
        foreseen.roles, foreseen.certificates, foreseen.members,
    )  # fmt: skip


def test_roles_that_stand_on_each_other_fall_once(met):
    """Smith's role of an aide stands on his tracking: both are his, and each falls once."""
    met.service.appoint("aideOf(smith)", at=met.now)
    join(met)
    met.service.activate(met.prove(SMITH), "aide(smith)", at=met.now)
    done = met.service.revoke(principals=["jones", "smith"], at=met.now)
    assert sorted(done.roles) == ["jones: npTracker(jones)", "smith: aide(smith)", "smith: npTracker(smith)"]
    assert [str(role) for role in met.open().roles(at=met.now)] == ["kay: npTracker(kay)"]


@pytest.mark.parametrize("seed", range(4))
def test_together_is_the_same_as_one_after_the_other(tmp_path, seed):
    """Two services, one serving in batches and one serving singly, know the same at every step."""
    dice = random.Random(seed)
    batches, singly = (Force(str(tmp_path / f"{name}.db")) for name in ("batches", "singly"))
    for force in (batches, singly):
        prepare(force)
    waiting, inside = list(PEOPLE), []
    for _ in range(4):
        some = dice.sample(waiting, dice.randint(0, len(waiting)))
        join(batches, some)
        for name in some:
            code = singly.service.invite(name, at=singly.now, appointments=invitation(name).appointments)
            who = singly.prove(PEOPLE[name])
            singly.service.enrol(who, invitation=code, at=singly.now)
            singly.service.activate(who, f"npTracker({name})", at=singly.now)
            singly.service.capabilities(who, at=singly.now)
        waiting = [name for name in waiting if name not in some]
        inside += some
        assert state(batches) == state(singly)
        leaving = dice.sample(inside, dice.randint(0, len(inside)))
        ended = set()
        for name in leaving:
            ended |= {it.certificate_id for it in singly.service.revoke(principal=name, at=singly.now).certificates}
        if leaving:
            done = batches.service.revoke(principals=leaving, at=batches.now)
            assert {it.certificate_id for it in done.certificates} == ended
        inside = [name for name in inside if name not in leaving]
        assert state(batches) == state(singly)
    for force in (batches, singly):
        force.engine.dispose()
