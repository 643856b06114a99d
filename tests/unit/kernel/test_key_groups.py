"""Which key groups a broker may join, on which chains, until when; and who may not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from maia.authority import Action, CertificatePool, Constraint, Verifier, network_right, type_right
from maia.errors import ChainError, UsageError, VerificationError
from maia.events import EncryptionMode, EventType, Options, TypeName, attribute, parse_version
from maia.kernel import BROKERS, DOMAINS, KEY_MANAGER, admit_broker, groups_of_type, milliseconds, prove_key_manager
from maia.principals import Name, TestKind, Threshold
from maia.testing import (
    ATTRIBUTES,
    NETWORK_NAME,
    TYPE_NAME,
    TYPE_VERSION,
    People,
    book,
    grant,
    listing,
    naming,
    numberplate_network,
    online,
)

NET = numberplate_network()
NOW = NET.now
PITO, MET, CCS, CB, MB = (NET.people[who] for who in ("PITO", "Met", "CCS", "CB", "MB"))
BILLING, KENT = People("Billing", seed="groups").Billing, People("Kent", seed="groups").Kent
UIDS = tuple(ATTRIBUTES.values())
PLATE, TIME, PLACE = (ATTRIBUTES[name].encode() for name in ("numberplate", "timestamp", "location"))
KINDS = {"numberplate": "string", "timestamp": "timestamp", "location": "string"}
BROKER_NAMES = (
    naming(CCS, BROKERS, CB),
    naming(MET, BROKERS, MB),
    naming(PITO, DOMAINS, CCS),
    naming(PITO, DOMAINS, MET),
)


def version(text=TYPE_VERSION, mode=EncryptionMode.ATTRIBUTE, uids=UIDS):
    """One version of the type."""
    names = {uid: name for name, uid in ATTRIBUTES.items()} | {"7001": "speed"}
    kinds = KINDS | {"speed": "integer"}
    return EventType(
        name=TypeName(PITO.public_key, TYPE_NAME, parse_version(text)),
        attributes=tuple(attribute(names[uid], uid, kinds[names[uid]]) for uid in uids),
        options=Options(encryption=mode),
    )


def rights(*actions, **more):
    """Write a right on the type."""
    return type_right(PITO.public_key, TYPE_NAME, more.pop("version", "*"), actions=actions, **more)


def admitted(broker, certificates, versions=None, *, at=NOW, statements=None, network=None):
    """Admit a broker on certificates."""
    return admit_broker(
        broker.public_key,
        (version(),) if versions is None else versions,
        CertificatePool(certificates),
        verifier=Verifier(statements=statements),
        at=at,
        network=network,
    )


def refusal(broker, certificates, versions=None, **more):
    """Say with which code a broker is refused; ``None`` when it is admitted."""
    try:
        admitted(broker, certificates, versions, **more)
    except VerificationError as refused:
        return refused.code
    return None


def labels(admissions):
    """Name the groups."""
    return {admission.group.label for admission in admissions}


def test_a_type_sealed_by_attribute_has_a_group_for_each_attribute_and_one_for_whole_events():
    """NP attribute mode: 3 groups, and 1 for event level; event mode: 1; plain: none."""
    assert {group.label for group in groups_of_type([version()])} == {PLATE, TIME, PLACE, b"*"}
    assert {group.label for group in groups_of_type([version(mode=EncryptionMode.EVENT)])} == {b"*"}
    assert groups_of_type([version(mode=EncryptionMode.PLAIN)]) == ()
    later = version("9000", uids=(UIDS[0], "7001"))
    assert {group.label for group in groups_of_type([version(), later])} == {PLATE, TIME, PLACE, b"7001", b"*"}


def test_a_broker_joins_on_the_chain_that_carries_its_requests():
    """CCTV's broker joins NP and its 3 attribute groups; of a domain with only timestamp, 1; no chain, none."""
    cameras = [*NET.some("Cap6", "Cap13b"), *BROKER_NAMES]
    assert labels(admitted(CB, cameras)) == {PLATE, TIME, PLACE, b"*"}
    timestamps = [
        grant(PITO, KENT, rights(Action.SUBSCRIBE, attributes=[ATTRIBUTES["timestamp"]]), delegate=True),
        grant(KENT, MB, type_right(None)),
        naming(KENT, BROKERS, MB),
        naming(PITO, DOMAINS, KENT),
    ]
    assert labels(admitted(MB, timestamps)) == {TIME}
    with pytest.raises(VerificationError) as refused:
        admitted(CB, BROKER_NAMES)
    assert refused.value.code == "NO_EVIDENCE"


def test_a_client_is_never_a_member_whatever_it_may_read():
    """A client with all of its domain's rights is still no broker; one named by somebody else neither."""
    everything = [*NET.some("Cap12"), grant(MET, NET.people["Smith"], type_right(None))]
    for name in (None, naming(CCS, BROKERS, NET.people["Smith"]), naming(MET, "detectives", NET.people["Smith"])):
        evidence = [*everything, *BROKER_NAMES] + ([] if name is None else [name])
        with pytest.raises(ChainError) as refused:
            admitted(NET.people["Smith"], evidence)
        assert refused.value.code == "NOT_A_BROKER"


def test_the_owner_and_brokers_by_group_name_and_by_nested_names_join():
    """The owner needs no name; a right for the group of brokers and names of names count as well."""
    assert labels(admitted(PITO, [])) == {PLATE, TIME, PLACE, b"*"}
    group = [
        *NET.some("Cap12"),
        grant(MET, Name(MET.public_key, ("salary-brokers",)), type_right(None)),
        naming(MET, "salary-brokers", MB),
        naming(MET, BROKERS, Name(MET.public_key, ("salary-brokers",))),
        naming(PITO, DOMAINS, MET),
    ]
    assert labels(admitted(MB, group)) == {PLATE, TIME, PLACE, b"*"}


def test_a_broker_has_no_group_beyond_its_domain():
    """A_broker is A_domain: a blanket from a domain with two attributes opens two groups."""
    split = [
        *NET.some("Cap6"),
        grant(CCS, BILLING, rights(Action.SUBSCRIBE, attributes=[UIDS[0], UIDS[1]]), delegate=True),
        grant(BILLING, KENT, type_right(None)),
        naming(BILLING, BROKERS, KENT),
        naming(PITO, DOMAINS, CCS),
        naming(CCS, DOMAINS, BILLING),
    ]
    assert labels(admitted(KENT, split)) == {PLATE, TIME}


def test_the_parents_name_for_a_broker_does_not_count_in_a_sub_domain():
    """The domain that gives the right says who is a broker, not one above it."""
    chain = [*NET.some("Cap6"), grant(CCS, BILLING, rights(Action.SUBSCRIBE), delegate=True)]
    chain += [grant(BILLING, KENT, type_right(None)), naming(CCS, BROKERS, KENT)]
    with pytest.raises(ChainError, match="no broker"):
        admitted(KENT, chain)


EVENT_LEVEL = {
    "bound to a version": ({"version": TYPE_VERSION}, "VERSION_BOUND"),
    "closes an attribute": ({"attributes": [UIDS[0], UIDS[1]]}, "ATTRIBUTES_CLOSED"),
}


@pytest.mark.parametrize("more, code", EVENT_LEVEL.values(), ids=EVENT_LEVEL)
def test_a_narrow_right_joins_no_group_of_whole_events(more, code):
    """Choice C15: the key of whole events opens all versions and attributes, so such a right is refused by name."""
    evidence = [grant(PITO, MET, rights(Action.SUBSCRIBE, **more), delegate=True), *NET.some("Cap13"), *BROKER_NAMES]
    with pytest.raises(ChainError) as refused:
        admitted(MB, evidence, [version(mode=EncryptionMode.EVENT)])
    assert refused.value.code == code
    assert b"*" not in labels(admitted(MB, evidence))


def test_a_right_to_one_version_opens_the_attributes_of_that_version():
    """Choice C15 by attribute: speed came with version 9000, and a right to 8516 does not open it."""
    versions = [version(), version("9000", uids=(UIDS[0], "7001"))]
    for text, expected in ((TYPE_VERSION, {PLATE, TIME, PLACE}), ("9000", {PLATE, b"7001"})):
        evidence = [grant(PITO, MET, rights(Action.SUBSCRIBE, version=text), delegate=True), *NET.some("Cap13")]
        assert labels(admitted(MB, [*evidence, *BROKER_NAMES], versions)) == expected


def test_conditions_open_no_group():
    """Whether a condition holds elsewhere cannot be seen, and a key once given stays given."""
    conditional = [*NET.some("Cap12"), grant(MET, MB, type_right(None), conditions=["on_duty"]), *BROKER_NAMES]
    assert refusal(MB, conditional) == "CONDITIONAL_RIGHT"


VICTORIA = [Constraint(ATTRIBUTES["location"], "=", "Victoria")]
EARLY = [Constraint(ATTRIBUTES["timestamp"], "<", NOW)]
DEMANDS = {
    "set above": ((VICTORIA, False), ((), False), "CONSTRAINED_RIGHT"),
    "set for the broker": (((), False), (VICTORIA, False), "CONSTRAINED_RIGHT"),
    "set above, and enforced by whoever set it": ((VICTORIA, True), ((), False), None),
    "enforced, and set again below without a word": ((VICTORIA, True), (VICTORIA, False), "CONSTRAINED_RIGHT"),
    "called enforced below, but not by whoever set it": ((VICTORIA, False), (VICTORIA, True), "CONSTRAINED_RIGHT"),
    "enforced above, and another demand below": ((VICTORIA, True), (EARLY, False), "CONSTRAINED_RIGHT"),
    "each enforced by the word of its own link": ((VICTORIA, True), (EARLY, True), None),
}


@pytest.mark.parametrize("above, below, code", DEMANDS.values(), ids=DEMANDS)
@pytest.mark.parametrize("mode", [EncryptionMode.ATTRIBUTE, EncryptionMode.EVENT])
def test_a_right_on_some_rows_opens_a_group_only_by_the_word_of_whoever_set_the_demand(mode, above, below, code):
    """Choice C42: keys open whole columns; a link below cannot say `enforced` of a demand that was set above."""
    (upper, upper_word), (lower, lower_word) = above, below
    evidence = [
        grant(PITO, MET, rights(Action.SUBSCRIBE, constraints=upper, enforced=upper_word), delegate=True),
        grant(MET, MB, rights(Action.SUBSCRIBE, constraints=lower, enforced=lower_word)),
        *BROKER_NAMES,
    ]
    if code is None:
        assert b"*" in labels(admitted(MB, evidence, [version(mode=mode)]))
    else:
        assert refusal(MB, evidence, [version(mode=mode)]) == code


def test_of_two_rights_the_one_on_all_rows_opens_its_own_groups_alone():
    """Times of all rows and everything at Victoria: the key of times, no other."""
    evidence = [
        grant(PITO, MET, rights(Action.SUBSCRIBE, constraints=VICTORIA), delegate=True),
        grant(PITO, MET, rights(Action.SUBSCRIBE, attributes=[ATTRIBUTES["timestamp"]]), delegate=True),
        *NET.some("Cap13"),
        *BROKER_NAMES,
    ]
    assert labels(admitted(MB, evidence)) == {TIME}


PLAIN_RIGHT = grant(PITO, MET, rights(Action.SUBSCRIBE), delegate=True)
SUB_RIGHT = (PLAIN_RIGHT, grant(MET, BILLING, rights(Action.SUBSCRIBE), delegate=True))
SUB_BROKER = (grant(BILLING, KENT, type_right(None)), naming(BILLING, BROKERS, KENT))
DOMAIN_CASES = {
    "whom the owner names": (
        MB, (PLAIN_RIGHT, grant(MET, MB, type_right(None)), naming(MET, BROKERS, MB), naming(PITO, DOMAINS, MET)), None,
    ),
    "who only may pass the right on": (
        MB, (PLAIN_RIGHT, grant(MET, MB, type_right(None)), naming(MET, BROKERS, MB)), "NOT_A_DOMAIN",
    ),
    "whom a stranger names": (
        MB,
        (PLAIN_RIGHT, grant(MET, MB, type_right(None)), naming(MET, BROKERS, MB), naming(CCS, DOMAINS, MET)),
        "NOT_A_DOMAIN",
    ),
    "who names itself": (
        MB,
        (PLAIN_RIGHT, grant(MET, MB, type_right(None)), naming(MET, BROKERS, MB), naming(MET, DOMAINS, MET)),
        "DOMAIN_KIND",
    ),
    "who has sub-domains beside its brokers": (
        MB,
        (PLAIN_RIGHT, grant(MET, MB, type_right(None)), naming(MET, BROKERS, MB), naming(PITO, DOMAINS, MET),
         naming(MET, DOMAINS, BILLING)),
        "DOMAIN_KIND",
    ),
    "below one who has brokers beside its sub-domains": (
        KENT,
        (*SUB_RIGHT, *SUB_BROKER, naming(PITO, DOMAINS, MET), naming(MET, DOMAINS, BILLING), naming(MET, BROKERS, MB)),
        "DOMAIN_KIND",
    ),
    "down the chain": (
        KENT, (*SUB_RIGHT, *SUB_BROKER, naming(PITO, DOMAINS, MET), naming(MET, DOMAINS, BILLING)), None,
    ),
    "down the chain, with a gap": (KENT, (*SUB_RIGHT, *SUB_BROKER, naming(MET, DOMAINS, BILLING)), "NOT_A_DOMAIN"),
    "down the chain, not at its end": (KENT, (*SUB_RIGHT, *SUB_BROKER, naming(PITO, DOMAINS, MET)), "NOT_A_DOMAIN"),
    "to whose brokers the owner gives the right": (
        MB, (grant(PITO, Name(MET.public_key, (BROKERS,)), rights(Action.SUBSCRIBE)), naming(MET, BROKERS, MB)), None,
    ),
    "to whose brokers somebody gives it who is no domain": (
        KENT,
        (PLAIN_RIGHT, grant(MET, Name(BILLING.public_key, (BROKERS,)), type_right(None)), SUB_BROKER[1]),
        "NOT_A_DOMAIN",
    ),
    "to whose brokers a domain gives it": (
        KENT,
        (
            PLAIN_RIGHT,
            grant(MET, Name(BILLING.public_key, (BROKERS,)), type_right(None)),
            SUB_BROKER[1],
            naming(PITO, DOMAINS, MET),
        ),
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("broker, evidence, code", DOMAIN_CASES.values(), ids=DOMAIN_CASES)
def test_without_a_network_a_domain_is_whom_the_owner_takes_for_one(broker, evidence, code):
    """Choice C42: whoever may pass a right on is not thereby a domain with brokers."""
    assert refusal(broker, evidence) == code


def test_an_owner_of_several_keys_takes_somebody_for_a_domain_together():
    """Each member whose share makes up the right says so; the word of one is not the owner's."""
    owner = Threshold(2, (PITO.public_key, KENT.public_key))
    name = TypeName(owner, TYPE_NAME, parse_version(TYPE_VERSION))
    shared = EventType(name=name, attributes=version().attributes, options=Options())
    right = type_right(owner, TYPE_NAME, actions=[Action.SUBSCRIBE])
    evidence = [*(grant(member, MET, right, delegate=True) for member in (PITO, KENT))]
    evidence += [grant(MET, MB, type_right(None)), naming(MET, BROKERS, MB), naming(PITO, DOMAINS, MET)]
    assert refusal(MB, evidence, [shared]) == "NOT_A_DOMAIN"
    assert refusal(MB, [*evidence, naming(KENT, DOMAINS, MET)], [shared]) is None


def test_on_a_network_a_domain_may_let_others_connect():
    """Choice C42: a delegable `connect`; one for itself is a client's, and the name `domains` does not help."""
    connect = network_right(PITO.public_key, NETWORK_NAME, [Action.CONNECT])
    network = (PITO.public_key, NETWORK_NAME)
    broker = (PLAIN_RIGHT, grant(MET, MB, type_right(None)), naming(MET, BROKERS, MB), grant(PITO, MB, connect))
    assert refusal(MB, (*broker, grant(PITO, MET, connect, delegate=True)), network=network) is None
    for more in ((), (grant(PITO, MET, connect),), (naming(PITO, DOMAINS, MET),)):
        assert refusal(MB, (*broker, *more), network=network) == "NOT_A_DOMAIN"
    own = (grant(PITO, KENT, rights(Action.SUBSCRIBE)), naming(PITO, BROKERS, KENT), grant(PITO, KENT, connect))
    assert refusal(KENT, own, network=network) is None, "the owner of the type is a domain"


def test_an_admission_rests_on_the_names_that_make_its_domain_one():
    """When the owner's word ends, so does the admission."""
    hour = timedelta(hours=1)
    evidence = [PLAIN_RIGHT, grant(MET, MB, type_right(None)), naming(MET, BROKERS, MB)]
    word = naming(PITO, DOMAINS, MET, valid=(NOW - hour, NOW + hour))
    for admission in admitted(MB, [*evidence, word]):
        assert admission.valid_to == milliseconds(NOW + hour) + 1
        assert word.certificate_id in admission.certificates
    assert refusal(MB, [*evidence, word], at=NOW + 2 * hour) == "NOT_A_DOMAIN"


def test_an_admission_lasts_as_long_as_everything_it_rests_on():
    """Chain, names and connection: the latest beginning and the earliest end, which is inside for the last instant."""
    hour, connect = timedelta(hours=1), network_right(PITO.public_key, NETWORK_NAME, [Action.CONNECT])
    evidence = [
        grant(PITO, MET, rights(Action.SUBSCRIBE), delegate=True, valid=(NOW - 3 * hour, NOW + 5 * hour)),
        grant(MET, MB, type_right(None), valid=(NOW - 2 * hour, None)),
        naming(MET, BROKERS, MB, valid=(None, NOW + 4 * hour)),
        naming(PITO, DOMAINS, MET),
        grant(PITO, MET, connect, delegate=True),
        grant(
            MET, MB, network_right(PITO.public_key, NETWORK_NAME, [Action.CONNECT]), valid=(NOW - hour, NOW + 6 * hour)
        ),
    ]
    (found,) = {(a.valid_from, a.valid_to) for a in admitted(MB, evidence)}
    assert found == (milliseconds(NOW - 2 * hour), milliseconds(NOW + 4 * hour) + 1)
    (found,) = {(a.valid_from, a.valid_to) for a in admitted(MB, evidence, network=(PITO.public_key, NETWORK_NAME))}
    assert found == (milliseconds(NOW - hour), milliseconds(NOW + 4 * hour) + 1)
    assert admitted(MB, evidence, at=NOW + 4 * hour)
    with pytest.raises(ChainError, match="no broker"):
        admitted(MB, evidence, at=NOW + 4 * hour + timedelta(milliseconds=1))
    with pytest.raises(VerificationError):
        admitted(MB, evidence[:4], network=(PITO.public_key, NETWORK_NAME))


def test_an_admission_ends_with_the_statements_that_vouch_for_it():
    """Two lists in a row reach to the end of the second; a revoked chain and an absent list admit nobody."""
    hour = timedelta(hours=1)
    tested = grant(MET, MB, type_right(None), tests=[online(TestKind.CRL, MET)])
    evidence = [*NET.some("Cap12"), tested, *BROKER_NAMES]
    first = listing(TestKind.CRL, MET, valid=(NOW - hour, NOW + hour))
    second = listing(TestKind.CRL, MET, sequence=2, valid=(NOW + hour, NOW + 2 * hour))
    (ends,) = {(a.valid_to, a.tested) for a in admitted(MB, evidence, statements=book(first, second))}
    assert ends == (milliseconds(NOW + 2 * hour), True)
    for statements in (book(), book(listing(TestKind.CRL, MET, [tested], valid=(NOW - hour, NOW + hour)))):
        with pytest.raises(VerificationError):
            admitted(MB, evidence, statements=statements)


def test_each_chain_is_an_admission_of_its_own():
    """Two chains, two credentials: when one is lost the other stays."""
    evidence = [*NET.some("Cap12"), *BROKER_NAMES]
    evidence += [grant(MET, MB, type_right(None)), grant(MET, MB, type_right(None), valid=(None, NOW))]
    found = [a for a in admitted(MB, evidence) if a.group.label == PLATE]
    assert len({a.credential for a in found}) == len(found) == 2
    assert {a.valid_to for a in found} == {None, milliseconds(NOW) + 1}


def test_the_owner_says_who_manages_keys():
    """The owner itself, or whom it names; nobody else, not even with the manage right."""
    verifier, name = Verifier(), version().name
    prove_key_manager(PITO.public_key, name, CertificatePool(), verifier=verifier, at=NOW)
    appointed = CertificatePool([naming(PITO, KEY_MANAGER, KENT)])
    prove_key_manager(KENT.public_key, name, appointed, verifier=verifier, at=NOW)
    for evidence in ([], [naming(MET, KEY_MANAGER, KENT)], [grant(PITO, KENT, rights(Action.MANAGE))]):
        with pytest.raises(ChainError) as refused:
            prove_key_manager(KENT.public_key, name, CertificatePool(evidence), verifier=verifier, at=NOW)
        assert refused.value.code == "NOT_THE_KEY_MANAGER"


def test_key_groups_are_of_one_type():
    """No versions, or those of two types, are the caller's mistake."""
    other = EventType(
        name=TypeName(MET.public_key, TYPE_NAME, parse_version("1")), attributes=version().attributes, options=Options()
    )
    for versions in ([], [version(), other]):
        with pytest.raises(UsageError):
            groups_of_type(versions)
