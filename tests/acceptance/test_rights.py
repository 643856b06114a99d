"""Rows 2.10, 5.01 to 5.09, 5.14, 5.15 and 24.18: what rights say, and what is left of them."""

from __future__ import annotations

import pytest

from maia.authority import (
    MANAGE_PARTS,
    NOTHING,
    Action,
    Constraint,
    Decision,
    Request,
    Root,
    Verifier,
    ask,
    ask_cell,
    ask_network,
    ask_type,
    check_revocable,
    five_tuple,
    intersect,
    is_nothing,
    network_right,
    permits,
    reduce_chain,
    row_request,
    rows_tag,
    type_right,
    uids_tag,
)
from maia.errors import ChainError, MaiaError, TagError, UsageError
from maia.principals import Certificate, KeySigner, TestKind
from maia.testing import ATTRIBUTES, NETWORK_NAME, People, at, grant, online

NOW = at("2026-06-01T09:00:00")
NUMBERPLATE = "uk.gov.pito.Numberplate"


def decide(who: KeySigner, evidence: list[Certificate], asked: Request) -> Decision:
    """Decide a request about something that names its owner."""
    return Verifier().decide(asked, principal=who.public_key, evidence=evidence, at=NOW)


@pytest.mark.requirement("2.10")
def test_a_network_is_named_by_its_coordinator_and_its_name():
    """[P_Evil, UK Police Network] is another network: a right to connect to one is none to the other."""
    people = People("pito", "evil", "met")
    pito, evil = people.pito.public_key, people.evil.public_key
    here, there = (ask_network(Action.CONNECT, owner, NETWORK_NAME) for owner in (pito, evil))
    assert here.wanted != there.wanted
    of_pito = [grant(people.pito, people.met, network_right(pito, NETWORK_NAME, [Action.CONNECT]))]
    of_evil = [grant(people.evil, people.met, network_right(evil, NETWORK_NAME, [Action.CONNECT]))]
    answers = [bool(decide(people.met, held, asked)) for held in (of_pito, of_evil) for asked in (here, there)]
    assert answers == [True, False, False, True]


ACTIONS = {
    "connect": lambda owner: ask_network(Action.CONNECT, owner, NETWORK_NAME),
    "install": lambda owner: ask_network(Action.INSTALL, owner, NETWORK_NAME),
    "publish": lambda owner: ask_type(Action.PUBLISH, owner, NUMBERPLATE, "8516"),
    "subscribe": lambda owner: ask_type(Action.SUBSCRIBE, owner, NUMBERPLATE, "8516"),
    "manage": lambda owner: ask_type(Action.MANAGE, owner, NUMBERPLATE, "8516"),
}


@pytest.mark.requirement("5.01")
@pytest.mark.parametrize("action", ACTIONS)
def test_without_credentials_every_action_is_refused(action: str):
    """Two kinds of resources, five actions, no evidence: no."""
    people = People("pito", "smith")
    denial = decide(people.smith, [], ACTIONS[action](people.pito.public_key))
    assert (denial.allowed, denial.reason) == (False, "NO_EVIDENCE")


@pytest.mark.requirement("5.02")
def test_a_right_on_a_type_does_not_connect():
    """Subscribe without connect: the connection is refused, so the subscription is out of reach."""
    people = People("pito", "smith")
    owner = people.pito.public_key
    evidence = [grant(people.pito, people.smith, type_right(owner, NUMBERPLATE, actions=[Action.SUBSCRIBE]))]
    assert decide(people.smith, evidence, ACTIONS["subscribe"](owner))
    assert decide(people.smith, evidence, ACTIONS["connect"](owner)).reason == "NOT_PERMITTED"
    evidence.append(grant(people.pito, people.smith, network_right(owner, NETWORK_NAME, [Action.CONNECT])))
    assert decide(people.smith, evidence, ACTIONS["connect"](owner))
    assert not decide(people.smith, evidence, ask_network(Action.CONNECT, owner, "Another Network"))


PATTERNS = {
    "any type of the owner": ("*", "*", NUMBERPLATE, True),
    "a star inside": ("uk.gov.*.Numberplate", "*", NUMBERPLATE, True),
    "a star inside, other ends": ("uk.gov.*.Speed", "*", NUMBERPLATE, False),
    "a star behind": ("Test*", "*", "TestType1", True),
    "a star behind is no star before": ("Test*", "*", "MyTest", False),
    "a star before": ("*.Numberplate", "*", NUMBERPLATE, True),
    "exact": (NUMBERPLATE, "8516", NUMBERPLATE, True),
    "another version": (NUMBERPLATE, "4799", NUMBERPLATE, False),
}


@pytest.mark.requirement("5.03")
@pytest.mark.parametrize("case", PATTERNS.values(), ids=PATTERNS.keys())
def test_type_patterns(case: tuple[str, str, str, bool]):
    """The owner is exact or open, the version exact or open, the name a pattern."""
    name, version, asked, expected = case
    people = People("pito", "smith")
    for owner in (people.pito.public_key, None):
        evidence = [grant(people.pito, people.smith, type_right(owner, name, version))]
        request = ask_type(Action.SUBSCRIBE, people.pito.public_key, asked, "8516")
        assert bool(decide(people.smith, evidence, request)) is expected


@pytest.mark.requirement("5.03")
@pytest.mark.parametrize("version", [">=5", "<5", "5 or later", "4*", ""])
def test_versions_have_no_order(version: str):
    """A version with an operator is no pattern."""
    with pytest.raises(TagError) as caught:
        type_right(People("pito").pito.public_key, NUMBERPLATE, version)
    assert caught.value.code == "VERSION_PATTERN"


@pytest.mark.requirement("5.04")
def test_wildcards_reach_the_issuers_own_resources_only():
    """CCS issues `type:*`: worth nothing on a type of PITO, all on one of CCS."""
    people = People("pito", "ccs", "bo")
    evidence = [grant(people.ccs, people.bo, type_right(None))]
    on_pito = ask_type(Action.SUBSCRIBE, people.pito.public_key, NUMBERPLATE, "8516")
    on_ccs = ask_type(Action.SUBSCRIBE, people.ccs.public_key, "ccs.Charge", "1")
    assert decide(people.bo, evidence, on_pito).reason == "WRONG_ROOT"
    assert decide(people.bo, evidence, on_ccs)


@pytest.mark.requirement("5.05")
@pytest.mark.parametrize("actions", [[Action.CONNECT, Action.INSTALL], None], ids=["both", "any"])
def test_one_certificate_combines_actions(actions: list[Action] | None):
    """Connect and install in one certificate work both, and so does `action:*`."""
    people = People("pito", "ccs")
    owner = people.pito.public_key
    evidence = [grant(people.pito, people.ccs, network_right(owner, NETWORK_NAME, actions))]
    assert decide(people.ccs, evidence, ACTIONS["connect"](owner))
    assert decide(people.ccs, evidence, ACTIONS["install"](owner))


PLATE, TIME, PLACE = ATTRIBUTES["numberplate"], ATTRIBUTES["timestamp"], ATTRIBUTES["location"]
SPEED, COLOUR = "7001", "1111"


def visible(who: KeySigner, owner: KeySigner, evidence: list[Certificate], row: dict[str, bytes]) -> set[str]:
    """List the uids of a row that somebody may read."""
    return {
        uid
        for uid in row
        if decide(
            who,
            evidence,
            ask_cell(Action.SUBSCRIBE, owner.public_key, NUMBERPLATE, "8516", uid, row_request(row)),
        )
    }


@pytest.mark.requirement("5.06")
def test_unlisted_attributes_stay_closed_and_absent_ones_are_harmless():
    """BO lists numberplate and timestamp (and a colour that is no more); speed, added later, stays closed."""
    people = People("pito", "bo")
    right = type_right(
        people.pito.public_key, NUMBERPLATE, actions=[Action.SUBSCRIBE], attributes=[PLATE, TIME, COLOUR]
    )
    evidence = [grant(people.pito, people.bo, right)]
    row = {PLATE: b"AE05 XYZ", TIME: b"2026-06-01", PLACE: b"Victoria", SPEED: b"30"}
    assert visible(people.bo, people.pito, evidence, row) == {PLATE, TIME}


@pytest.mark.requirement("5.07")
def test_attributes_are_meant_by_uid():
    """A right lists uids and never names, so renaming 3265 to `plate` changes nothing that a certificate says."""
    people = People("pito", "bo")
    right = type_right(people.pito.public_key, NUMBERPLATE, actions=[Action.SUBSCRIBE], attributes=["3265", "9058"])
    evidence = [grant(people.pito, people.bo, right)]
    assert visible(people.bo, people.pito, evidence, {"3265": b"AE05 XYZ", "9058": b"x"}) == {"3265", "9058"}
    assert b"numberplate" not in evidence[0].raw
    assert visible(people.bo, people.pito, evidence, {"plate": b"AE05 XYZ"}) == set()


@pytest.mark.requirement("5.08")
def test_intersection_of_attribute_sets_and_constraints():
    """All attributes ∩ {location=Victoria, numberplate} -> that list; ranges on one attribute join."""
    owner = People("pito").pito.public_key
    everything = type_right(owner, NUMBERPLATE, actions=[Action.SUBSCRIBE])
    listed = type_right(
        owner, NUMBERPLATE, actions=[Action.SUBSCRIBE], attributes=[PLACE, PLATE],
        constraints=[Constraint(PLACE, "=", "Victoria")],
    )  # fmt: skip
    assert intersect(everything, listed) == listed
    low, high = rows_tag([Constraint("2", ">=", 500)]), rows_tag([Constraint("2", "<", 700)])
    both = intersect(low, high)
    admitted = [n for n in range(490, 710) if permits(both, row_request({"2": b"%d" % n}))]
    assert admitted == list(range(500, 700))
    assert intersect(uids_tag(["1", "2"]), uids_tag(["2", "3"])) == uids_tag(["2"])
    assert intersect(uids_tag(["1"]), uids_tag(["3"])) == NOTHING


@pytest.mark.requirement("5.08")
def test_an_unsatisfiable_constraint_voids_the_chain():
    """Attr2>=500 ∩ Attr2<400 admits no row, so the chain is void."""
    people = People("a", "b", "c")
    owner = people.a.public_key

    def right(operator: str, number: int) -> object:
        constraint = Constraint("2", operator, number)
        return type_right(owner, "T", actions=[Action.SUBSCRIBE], attributes=["2"], constraints=[constraint])

    chain = [grant(people.a, people.b, right(">=", 500), delegate=True), grant(people.b, people.c, right("<", 400))]
    assert is_nothing(intersect(right(">=", 500), right("<", 400)))
    with pytest.raises(ChainError, match="EMPTY_AUTHORITY"):
        reduce_chain([five_tuple(link) for link in chain])
    asked = ask_type(Action.SUBSCRIBE, owner, "T", "1")
    assert decide(people.c, chain, asked).reason == "EMPTY_AUTHORITY"
    assert Verifier().clauses(asked, principal=people.c.public_key, evidence=chain, at=NOW) == ()


@pytest.mark.requirement("5.09")
def test_chains_add_up_and_their_constraints_do_not_mix():
    """Chain A shows the location of one plate, chain B the time of all."""
    people = People("pito", "smith")
    owner = people.pito.public_key
    one_plate = type_right(
        owner, NUMBERPLATE, actions=[Action.SUBSCRIBE], attributes=[PLACE],
        constraints=[Constraint(PLATE, "=", "AE05 XYZ")],
    )  # fmt: skip
    times = type_right(owner, NUMBERPLATE, actions=[Action.SUBSCRIBE], attributes=[TIME])
    evidence = [grant(people.pito, people.smith, right) for right in (one_plate, times)]

    def seen(plate: bytes) -> set[str]:
        return visible(people.smith, people.pito, evidence, {PLATE: plate, TIME: b"T1", PLACE: b"Victoria"})

    assert seen(b"BX51 ABC") == {TIME}
    assert seen(b"AE05 XYZ") == {TIME, PLACE}
    asked = ask_type(Action.SUBSCRIBE, owner, NUMBERPLATE, "8516")
    clauses = Verifier().clauses(asked, principal=people.smith.public_key, evidence=evidence, at=NOW)
    assert len(clauses) == 2


@pytest.mark.requirement("5.14")
def test_a_client_cannot_pass_its_right_on():
    """Smith (D=false) signs for Jones: delegation is forbidden, and by whom is said."""
    people = People("pito", "met", "smith", "jones")
    right = type_right(people.pito.public_key, NUMBERPLATE, actions=[Action.SUBSCRIBE], attributes=[TIME])
    evidence = [
        grant(people.pito, people.met, right, delegate=True),
        grant(people.met, people.smith, right),
        grant(people.smith, people.jones, right),
    ]
    asked = ask_type(Action.SUBSCRIBE, people.pito.public_key, NUMBERPLATE, "8516")
    assert decide(people.smith, evidence, asked)
    denial = decide(people.jones, evidence, asked)
    assert denial.reason == "DELEGATION_FORBIDDEN"
    assert people.met.public_key.fingerprint in denial.error.message


@pytest.mark.requirement("5.15")
def test_a_root_delegation_is_carried_and_cannot_be_revoked():
    """PITO->Met root on NP: Met->Kent->client holds only with it; revoking it is refused; PITO keeps its power."""
    people = People("pito", "met", "kent", "client")
    owner = people.pito.public_key
    root = grant(people.pito, people.met, type_right(owner, NUMBERPLATE), delegate=True)
    chain = [
        grant(people.met, people.kent, type_right(owner, NUMBERPLATE), delegate=True),
        grant(people.kent, people.client, type_right(owner, NUMBERPLATE)),
    ]
    for action in (Action.PUBLISH, Action.SUBSCRIBE, Action.MANAGE, *MANAGE_PARTS):
        asked = ask_type(action, owner, NUMBERPLATE, "8516")
        assert decide(people.client, [root, *chain], asked)
        assert decide(people.client, chain, asked).reason == "WRONG_ROOT"
        assert decide(people.pito, [], asked)
    with pytest.raises(UsageError) as caught:
        check_revocable(root)
    assert caught.value.code == "IRREVOCABLE"
    listed = online(TestKind.CRL, people.pito)
    assert check_revocable(grant(people.pito, people.met, type_right(owner, NUMBERPLATE), tests=[listed])) is None
    assert check_revocable(grant(people.pito, people.met, type_right(owner, NUMBERPLATE), valid=(0, 60))) is None


@pytest.mark.requirement("24.18")
def test_figure_2_8_of_the_thesis():
    """Pa gives Pb {read,write} on O to pass on; Pb gives Pc {read}: Pc reads, cannot write, cannot pass on."""
    people = People("a", "b", "c", "d")
    evidence = [
        grant(people.a, people.b, "(O (* set read write))", delegate=True),
        grant(people.b, people.c, "(O read)"),
        grant(people.c, people.d, "(O read)"),
    ]
    verifier = Verifier([Root(subject=people.a.public_key)])

    def reason(who: str, word: bytes) -> str | None:
        asked = ask((b"O", word))
        return verifier.decide(asked, principal=people[who].public_key, evidence=evidence, at=NOW).reason

    assert reason("c", b"read") is None
    assert reason("c", b"write") == "NOT_PERMITTED"
    assert reason("d", b"read") == "DELEGATION_FORBIDDEN"


def test_an_action_of_the_wrong_kind_is_refused():
    """Rights on a network and on a type do not mix."""
    owner = People("pito").pito.public_key
    wrong = (
        lambda: network_right(owner, NETWORK_NAME, [Action.PUBLISH]),
        lambda: type_right(owner, NUMBERPLATE, actions=[Action.CONNECT]),
        lambda: ask_network(Action.PUBLISH, owner, NETWORK_NAME),
        lambda: ask_type(Action.CONNECT, owner, NUMBERPLATE, "1"),
        lambda: ask_cell(Action.MANAGE, owner, NUMBERPLATE, "1", PLATE, (b"row",)),
    )
    for call in wrong:
        with pytest.raises(MaiaError) as caught:
            call()
        assert caught.value.code == "UNKNOWN_ACTION"
