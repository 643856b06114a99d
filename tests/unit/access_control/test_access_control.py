"""The access control service: who is let in, what is handed out, what is refused; on both databases."""

from __future__ import annotations

import pytest

from domain_world import ASSIGNED, DAY, HOUR, MINUTE, ORDER, PLATE, RIGHT, SECOND, TRACKING, Force
from maia.access_control import Settings
from maia.access_control.appointments import appointment_tag
from maia.authority import Challenge, ListStatement, Rhythm, parse_statement, type_right
from maia.errors import DeniedError, MaiaError, NotFoundError, SignatureError, UsageError, VerificationError
from maia.policy import PolicySyntaxError
from maia.principals import Authorisation, KeySigner, issue, prove_by_nonce
from maia.principals import TestKind as Kind
from maia.testing import grant

EVE = KeySigner(b"e" * 32)


@pytest.fixture
def met(database_url):
    """A force without members."""
    force = Force(database_url)
    yield force
    force.engine.dispose()


# ------------------------------------------------------------------ enrolment


def test_an_invitation_is_used_once(met):
    """The code that made Smith a member makes nobody else one, and looks like a wrong one."""
    code = met.service.invite("smith", at=met.now)
    member = met.service.enrol(met.prove("Smith"), invitation=code, at=met.now).member
    assert (member.name, member.key) == ("smith", met.network.key("Smith"))
    refusals = []
    for shown in (code, "wrong"):
        with pytest.raises(DeniedError) as refusal:
            met.service.enrol(met.prove(EVE), invitation=shown, at=met.now)
        refusals.append(str(refusal.value))
    assert refusals[0] == refusals[1]
    assert [item.name for item in met.service.members(at=met.now)] == ["smith"]


def test_an_invitation_ends(met):
    """A code that is too old is refused, and the name is free again."""
    code = met.service.invite("smith", at=met.now, life=HOUR)
    with pytest.raises(DeniedError):
        met.service.enrol(met.prove("Smith", at=met.now + DAY), invitation=code, at=met.now + HOUR + SECOND)
    assert met.service.invite("smith", at=met.now + HOUR + SECOND)


def test_the_code_of_an_invitation_is_not_kept(met):
    """Whoever reads the database finds a hash, not the code."""
    code = met.service.invite("smith", at=met.now)
    with met.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT * FROM acs_invitations").all()
    assert len(rows) == 1
    assert code not in repr(rows)


TAKEN = {
    "a name twice": ("smith", "MEMBER_NAME_TAKEN"),
    "a name that is no word": ("smith jones", "MEMBER_NAME"),
    "a name of the domain's own": ("brokers", "MEMBER_NAME"),
    "the name of whoever asks": ("self", "MEMBER_NAME"),
}


@pytest.mark.parametrize("name, code", TAKEN.values(), ids=TAKEN)
def test_a_name_is_given_once(met, name, code):
    """Names stand in rules, so each means one member for ever."""
    met.join("smith", "Smith")
    met.service.revoke(principal="smith", at=met.now)
    with pytest.raises(UsageError) as refusal:
        met.service.invite(name, at=met.now)
    assert refusal.value.code == code


def test_one_key_is_one_member(met):
    """A member cannot enrol again under a second name, nor after it is gone."""
    met.join("smith", "Smith")
    met.service.revoke(principal="smith", at=met.now)
    code = met.service.invite("smyth", at=met.now)
    with pytest.raises(UsageError) as refusal:
        met.service.enrol(met.prove("Smith"), invitation=code, at=met.now)
    assert refusal.value.code == "MEMBER_KEY"


def test_an_appointment_certificate_enrols_its_subject_and_nobody_else(met):
    """The domain signed it for Smith's key: Eve's proof with it is refused, Smith's makes him a detective."""
    signed = met.service.issue_appointment(
        met.network.key("Smith"), "smith", "detective(smith)", at=met.now, until=met.now + DAY
    )
    with pytest.raises(VerificationError):
        met.service.enrol(met.prove(EVE), appointment=signed.raw, at=met.now)
    met.service.enrol(met.prove("Smith"), appointment=signed.raw, at=met.now)
    met.service.apply("sleuth(self) <- detective(self)*", at=met.now)
    met.service.activate(met.prove("Smith"), "sleuth(smith)", at=met.now)
    assert met.service.roles(at=met.now + DAY) != ()
    assert met.service.roles(at=met.now + DAY + SECOND) == ()


def test_an_appointment_of_another_domain_is_none(met):
    """CCS appoints nobody at the Met."""
    ccs = met.network.people["CCS"]
    tag = appointment_tag(ccs.public_key, "smith", "detective(smith)")
    smith = met.network.key("Smith")
    signed = issue(Authorisation(issuer=ccs.public_key, subject=smith, delegate=False, tag=tag), ccs)
    with pytest.raises(VerificationError):
        met.service.enrol(met.prove("Smith"), appointment=signed.raw, at=met.now)


def test_a_challenge_serves_once_and_for_a_minute(met):
    """An answer cannot be shown again, nor later, nor to a challenge of somebody else's."""
    challenge = met.service.challenge(at=met.now)
    signer = met.network.people["Smith"]
    proof = prove_by_nonce(signer, audience=met.service.key.key_id, challenge=challenge, own_nonce=b"n" * 16)
    assert met.service.authenticate(proof, challenge, at=met.now).key == signer.public_key
    for nonce, when in (
        (challenge, met.now),
        (met.service.challenge(at=met.now), met.now + 2 * MINUTE),
        (b"x" * 32, met.now),
    ):
        answer = prove_by_nonce(signer, audience=met.service.key.key_id, challenge=nonce, own_nonce=b"n" * 16)
        with pytest.raises(VerificationError):
            met.service.authenticate(answer, nonce, at=when)


def test_only_administrators_administer(met):
    """The domain's key may, a member with the privilege may, others may not."""
    met.service.apply("chief(self) <- head(self)*\nchief(x) |- administer", at=met.now)
    met.join("smith", "Smith", appointments=["head(smith)"])
    met.service.require_administrator(met.prove("Met"), at=met.now)
    for who in ("Smith", "BO"):
        with pytest.raises(DeniedError):
            met.service.require_administrator(met.prove(who), at=met.now)
    met.service.activate(met.prove("Smith"), "chief(smith)", at=met.now)
    met.service.require_administrator(met.prove("Smith"), at=met.now)


# ------------------------------------------------------------------ roles and capabilities


def test_a_stranger_activates_nothing(met):
    """A proven key that is no member's is refused by name."""
    met.service.apply(TRACKING, at=met.now)
    with pytest.raises(DeniedError) as refusal:
        met.service.activate(met.prove(EVE), PLATE, at=met.now)
    assert refusal.value.code == "NOT_A_MEMBER"


def test_capabilities_that_serve_are_handed_out_again(met):
    """Asking twice signs once; asking when most of the life is over signs a fresh one."""
    smith = met.track()
    first = met.service.capabilities(smith, at=met.now)
    again = met.service.capabilities(smith, at=met.now + HOUR)
    later = met.service.capabilities(smith, at=met.now + 20 * HOUR)
    ids = [{item.certificate_id for item in handed.certificates} for handed in (first, again, later)]
    assert ids[0] == ids[1]
    assert not ids[0] & ids[2]


def test_everything_handed_out_is_in_the_register(met):
    """No certificate leaves that the register does not know."""
    handed = met.service.capabilities(met.track(), at=met.now)
    assert {item.certificate_id for item in handed.certificates} <= {
        entry.certificate_id for entry in met.service.register(at=met.now)
    }


def test_a_privilege_that_is_no_right_is_refused_by_name(met):
    """A value that does not fit the attribute gives no certificate, and the member is told why."""
    met.service.apply("seer(t) <- sees(self, t)*\nseer(t) |- subscribe Numberplate(timestamp > t)", at=met.now)
    met.join("smith", "Smith", appointments=["sees(smith, noon)"])
    smith = met.prove("Smith")
    met.service.activate(smith, "seer(noon)", at=met.now)
    assert met.service.capabilities(smith, at=met.now).refused == (
        ("subscribe Numberplate(timestamp > 'noon')", "POLICY_VALUE"),
    )


@pytest.mark.threat("T3")
def test_nobody_renews_the_certificate_of_another(met):
    """Jones proves Jones's key and shows Smith's certificate: refused, though Smith would get it."""
    smith = met.track()
    met.join("jones", "BO")
    (mine,) = [item for item in met.service.capabilities(smith, at=met.now).certificates if hasattr(item.body, "tag")]
    with pytest.raises(DeniedError):
        met.service.renew(met.prove("BO"), mine.raw, at=met.now)
    assert met.service.renew(smith, mine.raw, at=met.now + HOUR).certificates[0].body.subject == met.network.key(
        "Smith"
    )


def test_what_another_domain_issued_is_not_renewed_here(met):
    """PITO's certificate is PITO's business."""
    smith = met.track()
    with pytest.raises(SignatureError):
        met.service.renew(smith, met.network.certificates["Cap12"].raw, at=met.now)


@pytest.mark.threat("T34")
def test_a_right_given_anew_within_the_same_second_is_another_certificate(met):
    """The old one stays dead, the new one is good."""
    smith = met.track()
    old = met.service.capabilities(smith, at=met.now)
    met.service.revoke(role=PLATE, at=met.now)
    met.service.activate(smith, PLATE, at=met.now)
    new = met.service.capabilities(smith, at=met.now)
    assert met.subscribe(old).reason == "REVOKED"
    assert met.subscribe(new)


# ------------------------------------------------------------------ the register


def test_the_register_is_a_snapshot_of_the_policy_in_force(met):
    """Three are issued, one ends at 10, one is passed on and reported: at 11 there are two own and one reported."""
    people, start = met.network.people, met.now
    right = type_right(met.network.key("PITO"))
    met.service.grant(people["Smith"].public_key, right, at=start, until=start + 10 * SECOND)
    met.service.grant(people["BO"].public_key, right, at=start, until=start + DAY)
    met.service.grant(people["CCS"].public_key, right, at=start, until=start + DAY, delegate=True)
    passed_on = grant(people["CCS"], people["SO"], right, valid=(start, start + DAY))
    met.service.report(met.prove("CCS"), passed_on.raw, at=start)
    assert len(met.service.register(at=start + 10 * SECOND)) == 4
    entries = met.service.register(at=start + 11 * SECOND)
    assert [entry.reported for entry in sorted(entries, key=lambda entry: entry.reported)] == [False, False, True]
    assert [entry.certificate_id for entry in entries if entry.reported] == [passed_on.certificate_id]


def test_a_report_of_what_nobody_gave_is_refused(met):
    """Without a right to pass on, or for somebody else's delegation, nothing is entered."""
    people, right = met.network.people, type_right(met.network.key("PITO"))
    met.service.grant(people["BO"].public_key, right, at=met.now)
    cases = {"BO": grant(people["BO"], people["SO"], right), "CCS": grant(people["BO"], people["SO"], right)}
    for who, certificate in cases.items():
        with pytest.raises(DeniedError):
            met.service.report(met.prove(who), certificate.raw, at=met.now)
    assert len(met.service.register(at=met.now)) == 1


def test_withdrawing_a_right_ends_what_was_reported_below_it(met):
    """The delegate's own certificate ends because what it stands on does; the list names the domain's alone."""
    people, right = met.network.people, type_right(met.network.key("PITO"))
    given = met.service.grant(people["CCS"].public_key, right, at=met.now, delegate=True)
    passed_on = grant(people["CCS"], people["SO"], right)
    met.service.report(met.prove("CCS"), passed_on.raw, at=met.now)
    done = met.service.revoke(certificates=[given.certificate_id], at=met.now)
    assert [(item.certificate_id, item.reported) for item in done.certificates] == [
        (given.certificate_id, False), (passed_on.certificate_id, True),
    ]  # fmt: skip
    assert parse_statement(done.statement or b"").body.certificates == {given.certificate_id}
    assert met.service.register(at=met.now) == ()


# ------------------------------------------------------------------ policy


UNUSABLE = {
    "no policy": ("npTracker(", 1, 11),
    "an unbound variable": ("a(self) <- b(self)*\nspy(x) <- b(self)*", 2, 5),
    "an unknown type": ("a(self) |- subscribe Nothing(x)", 1, 22),
    "an unknown attribute": ("a(self) |- subscribe Numberplate(colour)", 1, 34),
}


@pytest.mark.parametrize("text, line, column", UNUSABLE.values(), ids=UNUSABLE)
def test_a_policy_that_cannot_be_meant_is_refused_with_its_place(met, text, line, column):
    """Upload and preview point at line and column, and the policy in force stays."""
    met.service.apply(TRACKING, at=met.now)
    for upload in (met.service.preview, met.service.apply):
        with pytest.raises(PolicySyntaxError) as refusal:
            upload(text, at=met.now)
        assert (refusal.value.line, refusal.value.column) == (line, column)
    assert met.service.policy(at=met.now) == TRACKING


def test_a_preview_says_who_loses_what_and_changes_nothing(met):
    """Smith would lose the role, the privilege and the certificate; then applying does exactly that."""
    smith = met.track()
    handed = met.service.capabilities(smith, at=met.now)
    stricter = TRACKING.replace("detective(self)*", "detective(self)*, trained(self)*")
    foreseen = met.service.preview(stricter, at=met.now)
    (mine,) = foreseen.differences
    assert (mine.principal, mine.lost_roles, mine.lost_privileges) == ("smith", (PLATE,), (RIGHT,))
    assert len(mine.ended) == 1
    assert met.subscribe(handed)
    assert len(met.service.roles(at=met.now)) == 1
    assert met.service.apply(stricter, at=met.now).differences == foreseen.differences
    assert met.subscribe(handed).reason == "REVOKED"


def test_a_policy_that_still_carries_a_role_leaves_it_alone(met):
    """Another rule for something else, and other words for the same rule, end nothing."""
    handed = met.service.capabilities(met.track(), at=met.now)
    reworded = TRACKING.replace("(case,", "(file,").replace(", case)", ", file)") + "doctor(self) <- employed(self)*\n"
    assert met.service.apply(reworded, at=met.now).differences == ()
    assert met.subscribe(handed)


# ------------------------------------------------------------------ statements and telling


def test_one_list_a_period_covers_all_certificates(database_url):
    """40 certificates, 3 withdrawn: one signature a period, three on the list; when one has expired, two."""
    met = Force(database_url, settings=Settings(rhythm=Rhythm(period=HOUR)))
    right = type_right(met.network.key("PITO"))
    issued = [
        met.service.grant(
            KeySigner(n.to_bytes(32, "big")).public_key, right, at=met.now, until=met.now + (2 if n == 3 else 48) * HOUR
        )
        for n in range(1, 41)
    ]
    met.service.revoke(certificates=[item.certificate_id for item in issued[:3]], at=met.now)
    before = len(met.telling.heard)
    sizes = []
    for hour in (1, 2, 3):
        (signed,) = met.service.beat(at=met.now + hour * HOUR)
        assert met.service.beat(at=met.now + hour * HOUR + MINUTE) == ()
        assert isinstance(signed.body, ListStatement)
        sizes.append(len(signed.body.certificates))
    assert sizes == [3, 3, 2]
    assert met.telling.kinds[before:] == ["statement"] * 3
    met.engine.dispose()


def test_one_time_answers_confirm_what_is_good(met):
    """Of a good, a withdrawn and a foreign certificate the answer names the good one."""
    right = type_right(met.network.key("PITO"))
    good, bad = (met.service.grant(key, right, at=met.now) for key in (met.network.key("BO"), met.network.key("SO")))
    met.service.revoke(certificates=[bad.certificate_id], at=met.now)
    foreign = met.network.certificates["Cap12"]
    question = Challenge(nonce=b"q" * 16, verifier="broker-1", until=met.now + MINUTE)
    answer = met.service.answer(question, [item.certificate_id for item in (good, bad, foreign)], at=met.now)
    assert answer.body.certificates == {good.certificate_id}


def test_revalidations_list_what_is_good(database_url):
    """A certificate that a revalidation leaves out is not good."""
    met = Force(database_url, settings=Settings(tests=(Kind.REVALIDATION,), rhythm=Rhythm(period=HOUR)))
    kept, lost = (
        met.service.grant(met.network.key(who), type_right(met.network.key("PITO")), at=met.now) for who in ("BO", "SO")
    )
    met.service.revoke(certificates=[lost.certificate_id], at=met.now)
    (signed,) = met.service.beat(at=met.now + HOUR)
    assert signed.body.certificates == {kept.certificate_id}
    met.engine.dispose()


def test_a_withdrawal_is_told_in_order_and_again_until_it_is_heard(met):
    """The list comes before the closing of subscriptions and keys; what was not heard waits."""
    smith = met.track()
    met.service.capabilities(smith, at=met.now)
    met.telling.heard.clear()
    met.telling.deaf = True
    done = met.service.retract(ASSIGNED, at=met.now)
    assert not done.told
    met.telling.deaf = False
    assert met.open().tell(at=met.now)
    assert met.telling.kinds == ["statement", "withdrawn"]
    (notice,) = [what for kind, what in met.telling.heard if kind == "withdrawn"]
    assert notice.keys == {met.network.key("Smith").key_id}
    assert notice.certificates == {item.certificate_id for item in done.certificates}


def test_a_preview_of_a_withdrawal_withdraws_nothing(met):
    """It names the role and the certificate; afterwards both are there, and nobody was told."""
    smith = met.track()
    handed = met.service.capabilities(smith, at=met.now)
    before = list(met.telling.heard)
    foreseen = met.service.preview_revocation(role=PLATE, at=met.now)
    assert foreseen.roles == (f"smith: {PLATE}",)
    assert len(foreseen.certificates) == 1
    assert met.telling.heard == before
    assert met.subscribe(handed)
    done = met.service.revoke(role=PLATE, at=met.now)
    assert (done.roles, done.certificates) == (foreseen.roles, foreseen.certificates)


MISSING = {
    "a certificate": {"certificates": [b"x" * 32]},
    "a member": {"principal": "nobody"},
    "a role": {"role": "npTracker(x)"},
}


@pytest.mark.parametrize("what", MISSING.values(), ids=MISSING)
def test_what_is_not_there_cannot_be_withdrawn(met, what):
    """A slip of the pen is an error, not a silent success."""
    with pytest.raises(NotFoundError):
        met.service.revoke(at=met.now, **what)
    with pytest.raises(UsageError):
        met.service.revoke(at=met.now)


# ------------------------------------------------------------------ restarts and environment


def test_roles_survive_a_restart_with_what_they_stand_on(met):
    """The unmonitored premise went before the restart, the monitored one goes after it."""
    met.service.apply("on(self) <- hired(self), badge(self)*\non(x) |- 'enter'", at=met.now)
    met.join("smith", "Smith", appointments=["hired(smith)", "badge(smith)"])
    met.service.activate(met.prove("Smith"), "on(smith)", at=met.now)
    assert met.service.retract("hired(smith)", at=met.now).roles == ()
    after = met.open()
    assert [str(role) for role in after.roles(at=met.now)] == ["smith: on(smith)"]
    assert after.retract("badge(smith)", at=met.now).roles == ("smith: on(smith)",)
    assert met.open().roles(at=met.now) == ()


def test_a_support_that_was_lost_does_not_come_back_with_a_restart(met):
    """Two supports, one lost and recorded again without activation: after a restart the other alone holds the role."""
    met.service.apply("on(self) <- a(self)*\non(self) <- b(self)*, c(self)", at=met.now)
    met.join("smith", "Smith", appointments=["a(smith)", "b(smith)", "c(smith)"])
    met.service.activate(met.prove("Smith"), "on(smith)", at=met.now)
    met.service.retract("b(smith)", at=met.now)
    met.service.retract("c(smith)", at=met.now)
    met.service.appoint("b(smith)", at=met.now)
    assert met.open().retract("a(smith)", at=met.now).roles == ("smith: on(smith)",)


def test_two_processes_see_what_the_other_wrote(met):
    """A second service on the same database sees the new member, and the first sees the withdrawal."""
    other = met.open()
    smith = met.track()
    assert [item.name for item in other.members(at=met.now)] == ["smith"]
    other.revoke(role=PLATE, at=met.now)
    assert met.service.roles(at=met.now) == ()
    with pytest.raises(NotFoundError):
        met.service.deactivate(smith, PLATE, at=met.now)


def test_a_database_of_another_domain_is_refused(met):
    """CCS does not run on the Met's records."""
    met.join("smith", "Smith")
    with pytest.raises(MaiaError) as refusal:
        met.open(signer=met.network.people["CCS"]).members(at=met.now)
    assert refusal.value.code == "OTHER_DOMAIN"


def test_an_environment_that_fails_means_no(met):
    """The provider says yes, then nothing: the role falls with its certificate at the next look."""
    met.service.apply("tracker(self) <- ?on-duty(self)*\ntracker(x) |- subscribe Numberplate", at=met.now)
    met.join("smith", "Smith")
    met.outside.true.add("on-duty(smith)")
    met.service.refresh(at=met.now)
    smith = met.prove("Smith")
    met.service.activate(smith, "tracker(smith)", at=met.now)
    handed = met.service.capabilities(smith, at=met.now)
    assert met.subscribe(handed)
    assert [str(role) for role in met.open().roles(at=met.now)] == ["smith: tracker(smith)"]
    met.outside.fails = True
    assert met.service.refresh(at=met.now).roles == ("smith: tracker(smith)",)
    assert met.subscribe(handed).reason == "REVOKED"


def test_a_condition_of_a_privilege_ends_the_certificate_and_keeps_the_role(met):
    """Right of the role stands a predicate: when it turns false the right goes, and the role stays."""
    met.service.apply("tracker(self) <- hired(self)*\ntracker(x), ?emergency |- subscribe Numberplate", at=met.now)
    met.join("smith", "Smith", appointments=["hired(smith)"])
    met.service.observe("emergency", at=met.now)
    smith = met.prove("Smith")
    met.service.activate(smith, "tracker(smith)", at=met.now)
    handed = met.service.capabilities(smith, at=met.now)
    assert met.subscribe(handed)
    done = met.service.retract("emergency", at=met.now)
    assert (done.roles, len(done.certificates)) == ((), 1)
    assert met.subscribe(handed).reason == "REVOKED"


def test_a_role_is_used_anonymously_or_under_a_name(database_url):
    """``treating-doctor(h, *, p)`` leaves no doctor in the journal; the identified variant does."""
    settings = Settings.from_toml(b'anonymous = ["treating-doctor(h, *, p)"]')
    met = Force(database_url, settings=settings)
    met.service.apply("treating-doctor(h, self, p) <- assigned(h, self, p)*", at=met.now)
    met.join("ali", "Smith")
    ali = met.prove("Smith")
    for patient in ("patterson", "jones"):
        met.service.appoint(f"assigned('RGT01', ali, {patient})", at=met.now)
    start = len(met.service.journal())
    met.service.activate(ali, "treating-doctor('RGT01', ali, patterson)", at=met.now)
    met.service.activate(ali, "treating-doctor('RGT01', ali, jones)", at=met.now, anonymous=False)
    met.service.revoke(role="treating-doctor('RGT01', ali, patterson)", at=met.now)
    lines = met.service.journal()[start:]
    assert [(line.action, line.who, line.what) for line in lines if line.action != "revoke"] == [
        ("activate", None, "treating-doctor('RGT01', *, patterson)"),
        ("activate", "ali", "treating-doctor('RGT01', ali, jones)"),
        ("fall", None, "treating-doctor('RGT01', *, patterson)"),
    ]
    assert not any("ali" in line.what for line in lines if line.what.endswith("patterson)"))
    met.engine.dispose()


@pytest.mark.parametrize("how", ["revoked", "retracted", "policy"])
def test_what_was_used_anonymously_falls_anonymously(met, how):
    """Also where only the one who activated it wanted no name in the journal."""
    rule = "helper(self, w) <- assigned(self, w)*"
    met.service.apply(rule, at=met.now)
    met.join("ali", "Smith")
    met.service.appoint("assigned(ali, ward)", at=met.now)
    met.service.activate(met.prove("Smith"), "helper(ali, ward)", at=met.now, anonymous=True)
    start = len(met.service.journal())
    if how == "revoked":
        met.service.revoke(role="helper(ali, ward)", at=met.now)
    elif how == "retracted":
        met.service.retract("assigned(ali, ward)", at=met.now)
    else:
        met.service.apply("other(self) <- assigned(self, w)*", at=met.now)
    lines = [(line.who, line.what) for line in met.service.journal()[start:] if line.action == "fall"]
    assert lines == [(None, "helper(*, ward)")]


SETTINGS = {
    "not TOML": b"life =",
    "unknown": b"colour = 1",
    "no life": b"life = 0",
    "a lead without a period": b"lead = 1",
    "a test nobody knows": b'tests = ["hope"]',
    "a revalidation without a period": b'tests = ["revalidation"]\nperiod = 0',
    "a role that hides nothing": b'anonymous = ["doctor(h)"]',
    "a truth that is text": b'connect = "yes"',
}


@pytest.mark.parametrize("text", SETTINGS.values(), ids=SETTINGS)
def test_settings_that_cannot_be_meant_are_refused(text):
    """A domain does not start with settings that say something else than they seem to."""
    with pytest.raises(MaiaError) as refusal:
        Settings.from_toml(text)
    assert refusal.value.code == "DOMAIN_SETTINGS"


def test_an_order_that_ends_bounds_the_certificate(met):
    """Its last instant is the order's, not the domain's longer life."""
    smith = met.track(until=met.now + HOUR)
    handed = met.service.capabilities(smith, at=met.now)
    (right,) = [item for item in handed.certificates if hasattr(item.body, "tag")]
    assert right.body.period.not_after == met.now + HOUR
    assert ORDER in str(met.service.explain(PLATE, principal="smith", at=met.now))


def test_a_domain_that_gives_up_its_rhythm_is_held_to_timed_lists(database_url):
    """All its lists are over and forgotten when it revokes somebody: the next list is timed, and others have it."""
    met = Force(database_url, settings=Settings(rhythm=Rhythm(period=MINUTE)))
    smith = met.track()
    handed = met.service.capabilities(smith, at=met.now)
    met.join("bo", "BO")
    assert met.subscribe(handed)
    met.service = met.open(settings=Settings(rhythm=None))
    later = met.now + HOUR
    met.service.revoke(principal="bo", at=later)
    assert met.subscribe(handed, at=later).reason == "NO_STATEMENT"
    (made,) = met.service.beat(at=later + SECOND)
    assert made.body.timed
    met.service.tell(at=later + SECOND)
    assert met.subscribe(handed, at=later + SECOND)
    met.engine.dispose()
