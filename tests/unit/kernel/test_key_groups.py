"""Which key groups a broker may join, on which chains, until when; and who may not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from maia.authority import Action, CertificatePool, Verifier, network_right, type_right
from maia.errors import ChainError, UsageError, VerificationError
from maia.events import EncryptionMode, EventType, Options, TypeName, attribute, parse_version
from maia.kernel import BROKERS, KEY_MANAGER, admit_broker, groups_of_type, milliseconds, prove_key_manager
from maia.principals import Name, TestKind
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
BROKER_NAMES = (naming(CCS, BROKERS, CB), naming(MET, BROKERS, MB))


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
    ]
    assert labels(admitted(MB, group)) == {PLATE, TIME, PLACE, b"*"}


def test_a_broker_has_no_group_beyond_its_domain():
    """A_broker is A_domain: a blanket from a domain with two attributes opens two groups."""
    split = [
        *NET.some("Cap6"),
        grant(CCS, BILLING, rights(Action.SUBSCRIBE, attributes=[UIDS[0], UIDS[1]]), delegate=True),
        grant(BILLING, KENT, type_right(None)),
        naming(BILLING, BROKERS, KENT),
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


def test_conditions_open_no_group_and_constraints_close_none():
    """Whether a condition holds elsewhere cannot be seen; a constraint on rows is the broker's to enforce."""
    constrained = [NET.certificates["Cap6"], NET.certificates["Cap13b"], *BROKER_NAMES]
    assert labels(admitted(CB, constrained)) >= {PLACE}
    conditional = [*NET.some("Cap12"), grant(MET, MB, type_right(None), conditions=["on_duty"]), *BROKER_NAMES]
    with pytest.raises(ChainError) as refused:
        admitted(MB, conditional)
    assert refused.value.code == "CONDITIONAL_RIGHT"


def test_an_admission_lasts_as_long_as_everything_it_rests_on():
    """Chain, names and connection: the latest beginning and the earliest end, which is inside for the last instant."""
    hour, connect = timedelta(hours=1), network_right(PITO.public_key, NETWORK_NAME, [Action.CONNECT])
    evidence = [
        grant(PITO, MET, rights(Action.SUBSCRIBE), delegate=True, valid=(NOW - 3 * hour, NOW + 5 * hour)),
        grant(MET, MB, type_right(None), valid=(NOW - 2 * hour, None)),
        naming(MET, BROKERS, MB, valid=(None, NOW + 4 * hour)),
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
        admitted(MB, evidence[:3], network=(PITO.public_key, NETWORK_NAME))


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
