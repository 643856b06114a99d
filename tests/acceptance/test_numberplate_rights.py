"""Rows 24.03 and 24.04: the certificates of the numberplate network."""

from __future__ import annotations

import pytest

from maia.authority import Action, Verifier, ask_cell, five_tuple, reduce_chain, row_request, walk
from maia.errors import ChainError
from maia.testing import ATTRIBUTES, TYPE_NAME, TYPE_VERSION, NumberplateNetwork, grant, numberplate_network


@pytest.fixture(scope="module")
def network() -> NumberplateNetwork:
    """Build the network once."""
    return numberplate_network()


def may(network: NumberplateNetwork, who: str, what: str) -> bool:
    """Ask with all certificates of the network as evidence."""
    request = {
        "connect": network.connect,
        "install": network.install,
        "publish": lambda: network.on_type(Action.PUBLISH),
        "subscribe": lambda: network.on_type(Action.SUBSCRIBE),
        "manage": lambda: network.on_type(Action.MANAGE),
    }[what]()
    evidence = tuple(network.certificates.values())
    return bool(Verifier().decide(request, principal=network.key(who), evidence=evidence, at=network.now))


MATRIX = {
    "PITO": "connect install publish subscribe manage",
    "Met": "connect subscribe",
    "CCS": "connect install publish subscribe",
    "Smith": "connect subscribe",
    "BO": "connect install subscribe",
    "SO": "connect subscribe",
    "CCTV": "connect publish",
    "MB": "connect subscribe",
    "CB": "connect publish subscribe",
    "TM": "install manage",
}


@pytest.mark.requirement("24.03")
@pytest.mark.parametrize("who", MATRIX)
def test_rights_matrix(network: NumberplateNetwork, who: str):
    """Each principal has the rights of the thesis and no other."""
    actions = ("connect", "install", "publish", "subscribe", "manage")
    assert [action for action in actions if may(network, who, action)] == MATRIX[who].split()


@pytest.mark.requirement("24.03")
def test_nobody_but_pito_grants_on_the_type(network: NumberplateNetwork):
    """What anybody else signs on their own reaches nobody; what PITO signs does."""
    right = network.certificates["Cap6"].body.tag
    stranger = numberplate_network("strangers").people["Smith"]
    request = network.on_type(Action.SUBSCRIBE)
    granters = []
    for who in MATRIX:
        evidence = [grant(network.people[who], stranger, right)]
        if Verifier().decide(request, principal=stranger.public_key, evidence=evidence, at=network.now):
            granters.append(who)
    assert granters == ["PITO"]


def cells(network: NumberplateNetwork, who: str, plate: bytes) -> set[str]:
    """List the attributes of a sighting that somebody may read."""
    row = {"numberplate": plate, "timestamp": b"2026-06-01_09:00:00", "location": b"Victoria"}
    request = row_request({ATTRIBUTES[name]: value for name, value in row.items()})
    evidence = tuple(network.certificates.values())
    return {
        name
        for name in row
        if Verifier().decide(
            ask_cell(Action.SUBSCRIBE, network.key("PITO"), TYPE_NAME, TYPE_VERSION, ATTRIBUTES[name], request),
            principal=network.key(who),
            evidence=evidence,
            at=network.now,
        )
    }


@pytest.mark.requirement("24.03")
def test_clients_read_their_attributes_only(network: NumberplateNetwork):
    """BO no locations, SO no plates, Smith one plate."""
    assert cells(network, "BO", b"AE05 XYZ") == {"numberplate", "timestamp"}
    assert cells(network, "SO", b"AE05 XYZ") == {"location", "timestamp"}
    assert cells(network, "Smith", b"AE05 XYZ") == {"numberplate", "timestamp", "location"}
    assert cells(network, "Smith", b"BX51 ABC") == set()


@pytest.mark.requirement("24.04")
def test_cap1_and_cap3_give_smith_the_connection(network: NumberplateNetwork):
    """Cap1+Cap3 -> (PITO, Smith, connect UKPN)."""
    result = reduce_chain([five_tuple(item) for item in network.some("Cap1", "Cap3")])
    assert (result.issuer, result.subject) == (network.key("PITO").key_id, network.key("Smith").key_id)
    assert result.tag == five_tuple(network.certificates["Cap1"]).tag
    assert result.delegate is False


@pytest.mark.requirement("24.04")
def test_cap1_cap2_and_n1_give_the_broker_the_connection(network: NumberplateNetwork):
    """Cap1+Cap2+N1 -> (PITO, MB, connect), through the name; without N1 nothing, and after its day nothing."""
    verifier = Verifier()
    request, broker = network.connect(), network.key("MB")
    evidence = network.some("Cap2", "N1", "Cap1")
    granted = verifier.verify(request, principal=broker, evidence=evidence, at=network.now)
    assert [item.certificate_id for item in granted.certificates] == [
        item.certificate_id for item in network.some("Cap1", "Cap2", "N1")
    ]
    assert [held.key for held in walk(granted.proof.tree)] == [network.key(who).key_id for who in ("PITO", "Met", "MB")]
    assert not verifier.decide(request, principal=broker, evidence=network.some("Cap1", "Cap2"), at=network.now)
    end = network.certificates["N1"].body.period.not_after
    assert granted.period.not_after == end
    assert verifier.decide(request, principal=broker, evidence=evidence, at=end)
    later = numberplate_network(now=end).now.replace(year=end.year + 1)
    assert not verifier.decide(request, principal=broker, evidence=evidence, at=later)


@pytest.mark.requirement("24.04")
def test_cap12_and_cap10_leave_cap10(network: NumberplateNetwork):
    """Cap12+Cap10 -> Smith as Cap10."""
    result = reduce_chain([five_tuple(item) for item in network.some("Cap12", "Cap10")])
    own = five_tuple(network.certificates["Cap10"])
    assert (result.issuer, result.subject) == (network.key("PITO").key_id, network.key("Smith").key_id)
    assert (result.tag, result.period, result.delegate) == (own.tag, own.period, False)


@pytest.mark.requirement("24.04")
def test_cap4_and_cap5_let_bo_install(network: NumberplateNetwork):
    """Cap4+Cap5 -> BO install."""
    granted = Verifier().verify(
        network.install(), principal=network.key("BO"), evidence=network.some("Cap5", "Cap4"), at=network.now
    )
    assert granted.certificates == network.some("Cap4", "Cap5")


@pytest.mark.requirement("24.04")
def test_cap6_and_cap10_do_not_join(network: NumberplateNetwork):
    """Cap6+Cap10 -> BrokenChain: CCS holds one, Met signed the other."""
    with pytest.raises(ChainError) as caught:
        reduce_chain([five_tuple(item) for item in network.some("Cap6", "Cap10")])
    assert caught.value.code == "BROKEN_CHAIN"
    denial = Verifier().decide(
        network.on_type(Action.SUBSCRIBE),
        principal=network.key("Smith"),
        evidence=network.some("Cap6", "Cap10"),
        at=network.now,
    )
    assert denial.reason == "BROKEN_CHAIN"


def test_the_network_is_the_same_every_time_and_other_with_other_seeds():
    """Keys come from the seed alone; without one they are fresh."""
    first, again = numberplate_network(), numberplate_network()
    assert {name: item.raw for name, item in first.certificates.items()} == {
        name: item.raw for name, item in again.certificates.items()
    }
    assert numberplate_network("other").key("PITO") != first.key("PITO")
    assert numberplate_network(None).key("PITO") != numberplate_network(None).key("PITO")
