"""Privileges as rights: what compiles to which tag, and what compiles to nothing, with its place."""

from __future__ import annotations

import pytest

from maia.authority import Action, Constraint, network_right, type_right
from maia.errors import MalformedError, UsageError
from maia.events import EventType, TypeName, attribute, parse_version
from maia.policy import (
    AttributeUse,
    EventRight,
    PolicyEngine,
    TypeCatalogue,
    Variable,
    check_privileges,
    compile_privilege,
    parse_policy,
    parse_privilege,
)
from maia.principals import KeySigner, fingerprint

PITO, CCS = (KeySigner(bytes([n]) * 32).public_key for n in (1, 2))


def version(name: str, number: str, owner=PITO, **attributes: tuple[int, str]) -> EventType:
    """One version of a type; attributes as ``name=(uid, type)``."""
    made = tuple(attribute(key, uid, kind) for key, (uid, kind) in attributes.items())
    return EventType(name=TypeName(owner, name, parse_version(number)), attributes=made)


SPEED = version(
    "uk.gov.Speed", "1", plate=(1, "string"), speed=(2, "integer"), weight=(3, "float"), toll=(4, "decimal"),
    seen=(5, "timestamp"), day=(6, "date"), paid=(7, "boolean"), photo=(8, "binary"),
)  # fmt: skip
KNOWN = TypeCatalogue([SPEED], networks=[(PITO, "UK Police Network")])


def right(*uids: int, action: Action = Action.SUBSCRIBE, where: tuple[Constraint, ...] = ()) -> object:
    """The right on some attributes of the type above."""
    return type_right(PITO, "uk.gov.Speed", actions=[action], attributes=[str(uid) for uid in uids], constraints=where)


GOOD = {
    "attributes by uid": ("subscribe Speed(plate, speed)", right(1, 2)),
    "a whole name": ("subscribe uk.gov.Speed(plate)", right(1)),
    "publishing": ("publish Speed(plate)", right(1, action=Action.PUBLISH)),
    "an attribute that is compared is open too": (
        "subscribe Speed(plate = 'AE05 XYZ', speed)", right(1, 2, where=(Constraint("1", "=", "AE05 XYZ"),)),
    ),
    "two demands on one attribute": (
        "subscribe Speed(speed >= 30, speed < 70)",
        right(2, where=(Constraint("2", ">=", 30), Constraint("2", "<", 70))),
    ),
    "a number in quotes is still read by the type": (
        "subscribe Speed(speed > '5')", right(2, where=(Constraint("2", ">", 5),)),
    ),
    "a text that looks like a number stays a text": (
        "subscribe Speed(plate = 5)", right(1, where=(Constraint("1", "=", "5"),)),
    ),
    "a truth": ("subscribe Speed(paid = true)", right(7, where=(Constraint("7", "=", True),))),
    "all attributes, also later ones": (
        "subscribe Speed", type_right(PITO, "uk.gov.Speed", actions=[Action.SUBSCRIBE]),
    ),
    "a method with the type as its parameter": (
        "advertise(Speed)", type_right(PITO, "uk.gov.Speed", actions=[Action.PUBLISH]),
    ),
    "defining": ("define(Speed)", type_right(PITO, "uk.gov.Speed", actions=[Action.MANAGE])),
    "the network": ("connect network", network_right(PITO, "UK Police Network", [Action.CONNECT])),
}  # fmt: skip


@pytest.mark.parametrize("text, tag", GOOD.values(), ids=GOOD)
def test_a_privilege_becomes_the_right_that_it_means(text, tag):
    """Uids stand for names, values have the attribute's type, and the owner is the type's."""
    made = compile_privilege(parse_privilege(text), KNOWN)
    assert made is not None
    assert (made.tag, made.owner) == (tag, PITO)


@pytest.mark.parametrize("text", ["'read notes'", "track(plate)", "subscribe(a, b)"])
def test_what_is_the_domains_own_matter_becomes_no_right(text):
    """A word, a term of another name, and a method with more parameters stay with the engine."""
    assert compile_privilege(parse_privilege(text), KNOWN) is None


BAD = {
    "no such type": ("subscribe Nothing(x)", "POLICY_TYPE", "Nothing"),
    "no such type as a parameter": ("publish('Nothing')", "POLICY_TYPE", "'Nothing'"),
    "no such attribute": ("subscribe Speed(plate, colour)", "POLICY_ATTRIBUTE", "colour"),
    "no such action": ("jump Speed(plate)", "POLICY_ACTION", "jump"),
    "no such network": ("connect moon", "POLICY_TYPE", "moon"),
    "attributes of a network": ("connect network(x)", "POLICY_ACTION", "connect"),
    "managing some attributes": ("manage Speed(plate)", "POLICY_ACTION", "manage"),
    "a value of another type": ("subscribe Speed(speed = 'fast')", "POLICY_VALUE", "speed"),
    "a number that would be rounded": ("subscribe Speed(speed = '1.5')", "POLICY_VALUE", "speed"),
    "an integer where a float stands": ("subscribe Speed(weight > 5)", "POLICY_VALUE", "weight"),
    "an instant without a zone": ("subscribe Speed(seen > '2026-06-01T00:00:00')", "POLICY_VALUE", "seen"),
    "an order of truths": ("subscribe Speed(paid > 'true')", "POLICY_VALUE", "paid"),
    "a comparison of octets": ("subscribe Speed(photo = 'x')", "POLICY_VALUE", "photo"),
}


@pytest.mark.parametrize("text, code, word", BAD.values(), ids=BAD)
def test_what_cannot_be_a_right_is_refused_with_its_place(text, code, word):
    """Compiled by itself it raises; uploaded in a rule it points at the word that is wrong."""
    with pytest.raises(MalformedError) as refusal:
        compile_privilege(parse_privilege(text), KNOWN)
    assert refusal.value.code == code
    line = f"a(s) |- {text}"
    (finding,) = check_privileges(parse_policy(f"\n{line}"), KNOWN, text=f"\n{line}")
    assert (finding.code, finding.line, finding.column) == (code, 2, line.index(word) + 1)


def test_variables_wait_for_activation():
    """At upload a variable may be anything; a privilege that still holds one is no privilege."""
    source = "seer(t) |- subscribe Speed(speed > t)\nlab(t) |- publish(t)"
    assert check_privileges(parse_policy(source), KNOWN, text=source) == ()
    open_right = EventRight(
        action="subscribe", event_type="Speed",
        attributes=(AttributeUse(name="speed", operator=">", value=Variable("t")),),
    )  # fmt: skip
    with pytest.raises(UsageError):
        compile_privilege(open_right, KNOWN)


def test_a_short_name_of_two_types_means_neither():
    """The whole names still do."""
    both = TypeCatalogue([version("a.T", "1", x=(1, "string")), version("b.T", "1", owner=CCS, x=(1, "string"))])
    with pytest.raises(MalformedError) as refusal:
        compile_privilege(parse_privilege("subscribe T"), both)
    assert refusal.value.code == "POLICY_AMBIGUOUS"
    made = compile_privilege(parse_privilege("subscribe b.T"), both)
    assert made is not None
    assert made.owner == CCS


def test_a_name_that_versions_use_differently_means_nothing():
    """License-plate was another attribute before; the one with a single meaning compiles."""
    known = TypeCatalogue(
        [
            version("T", "4799", plate=(9525, "string"), place=(1, "string")),
            version("T", "9000", plate=(3879, "string"), place=(1, "string")),
        ]
    )
    with pytest.raises(MalformedError) as refusal:
        compile_privilege(parse_privilege("subscribe T(plate)"), known)
    assert refusal.value.code == "POLICY_AMBIGUOUS"
    assert compile_privilege(parse_privilege("subscribe T(place)"), known) is not None


TWO_OWNERS = TypeCatalogue(
    [
        version("T", "4799", plate=(9525, "string"), place=(1, "string")),
        version("T", "9000", plate=(3879, "string"), place=(1, "string")),
        version("T", "9000", owner=CCS, plate=(7, "string")),
    ],
    owners={"pito": PITO, "ccs": CCS},
)


@pytest.mark.parametrize(
    "words, owner, of, uid",
    [
        ("subscribe pito/T@4799(plate)", PITO, "4799", "9525"),
        ("subscribe pito/T@9000(plate)", PITO, "9000", "3879"),
        ("subscribe pito/T(place)", PITO, "*", "1"),
        ("subscribe ccs/T(plate)", CCS, "*", "7"),
        (f"subscribe {fingerprint(CCS.key_id)}/T(plate)", CCS, "*", "7"),
    ],
)
def test_owner_and_version_say_which_type_is_meant(words, owner, of, uid):
    """One name of two owners, and two versions that mean different attributes by one name."""
    made = compile_privilege(parse_privilege(words), TWO_OWNERS)
    assert made is not None
    assert made.tag == type_right(owner, "T", of, actions=[Action.SUBSCRIBE], attributes=[uid])
    assert str(parse_privilege(words)) == words


@pytest.mark.parametrize(
    "words, code, said",
    [
        ("subscribe T", "POLICY_AMBIGUOUS", "`ccs/T`, `pito/T`"),
        ("subscribe T@9000", "POLICY_AMBIGUOUS", "`ccs/T`, `pito/T`"),
        ("subscribe pito/T(plate)", "POLICY_AMBIGUOUS", "versions of `T`"),
        ("subscribe ccs/T@4799", "POLICY_TYPE", "no version `4799` of `ccs/T`"),
        ("subscribe kent/T", "POLICY_TYPE", "no key `kent`"),
        ("subscribe pito/Nothing", "POLICY_TYPE", "no event type `pito/Nothing`"),
    ],
)
def test_an_owner_or_version_that_is_not_there_gives_nothing(words, code, said):
    """What a rule does not make clear compiles to nothing, and the message names the choices."""
    with pytest.raises(MalformedError, match=said) as refusal:
        compile_privilege(parse_privilege(words), TWO_OWNERS)
    assert refusal.value.code == code


def test_a_message_type_as_role_parameter_becomes_the_right_on_that_type():
    """lab-publisher("path_report") may advertise path_report, not prescription; as certificates would say it."""
    known = TypeCatalogue([version(name, "1", x=(1, "string")) for name in ("path_report", "prescription")])
    engine = PolicyEngine(
        parse_policy("lab-publisher(type) <- publishes(self, type)*\nlab-publisher(type) |- advertise(type)")
    )
    engine.appoint("publishes(kim, path_report)")
    engine.activate('lab-publisher("path_report")', principal="kim")
    made = [compile_privilege(privilege, known) for _, privilege in engine.privileges("kim")]
    assert [item.tag for item in made if item] == [type_right(PITO, "path_report", actions=[Action.PUBLISH])]
    assert not engine.decide("advertise(prescription)", principal="kim")
