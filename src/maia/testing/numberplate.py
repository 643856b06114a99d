"""The numberplate network of the thesis: its principals, certificates and requests, with real keys.

PITO coordinates the UK Police Network and owns the event type; the Metropolitan Police and the congestion charge
service are domains of it. The certificates bear the names of the thesis (Cap1 … Cap13, N1); those that the thesis needs
and does not print carry a letter more (Cap1b, Cap2b, Cap3b-BO …, Cap11b, Cap13b).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from maia.authority import Action, Constraint, Request, Tag, ask_network, ask_type, network_right, type_right
from maia.principals import Certificate, Name, PublicKey
from maia.testing.building import at, grant, naming
from maia.testing.people import People

NETWORK_NAME = "UK Police Network"
TYPE_NAME = "uk.gov.pito.Numberplate"
TYPE_VERSION = "8516"
ATTRIBUTES: Mapping[str, str] = MappingProxyType({"numberplate": "3265", "timestamp": "9058", "location": "3467"})
BROKERS = "Met Brokers"
_NAMES = ("PITO", "Met", "CCS", "Smith", "BO", "SO", "CCTV", "MB", "CB", "TM")


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberplateNetwork:
    """The network and its certificates.

    Attributes:
        people: Signers by name: PITO, Met, CCS, Smith, BO, SO, CCTV, MB, CB, TM.
        certificates: Certificates by the names of the thesis.
        now: An instant at which all of them are valid.
    """

    people: People
    certificates: Mapping[str, Certificate]
    now: datetime

    def key(self, who: str) -> PublicKey:
        """Return somebody's public key."""
        return self.people[who].public_key

    def some(self, *names: str) -> tuple[Certificate, ...]:
        """Pick certificates by name, in this order."""
        return tuple(self.certificates[name] for name in names)

    def connect(self) -> Request:
        """Ask to connect to the network."""
        return ask_network(Action.CONNECT, self.key("PITO"), NETWORK_NAME)

    def install(self) -> Request:
        """Ask to install types on the network."""
        return ask_network(Action.INSTALL, self.key("PITO"), NETWORK_NAME)

    def on_type(self, action: Action) -> Request:
        """Ask for an action on the numberplate type."""
        return ask_type(action, self.key("PITO"), TYPE_NAME, TYPE_VERSION)


def numberplate_network(seed: str | None = "numberplate", *, now: datetime | None = None) -> NumberplateNetwork:
    """Build the network.

    Args:
        seed: Whence the keys come; ``None`` makes fresh ones.
        now: When it is set up; the brokers' names live for a day from then, all else without end.

    >>> network = numberplate_network()
    >>> len(network.certificates), network.certificates["Cap1"].body.delegate
    (21, True)
    """
    people = People(*_NAMES, seed=seed)
    start = at("2026-06-01T09:00:00") if now is None else now
    return NumberplateNetwork(
        people=people,
        certificates=MappingProxyType({**_network_rights(people, start), **_type_rights(people)}),
        now=start,
    )


def _network_rights(people: People, start: datetime) -> dict[str, Certificate]:
    pito, met, ccs = people["PITO"], people["Met"], people["CCS"]

    def on_network(action: Action) -> Tag:
        return network_right(pito.public_key, NETWORK_NAME, [action])

    connect, install = on_network(Action.CONNECT), on_network(Action.INSTALL)
    day = (start, start + timedelta(days=1))
    return {
        "Cap1": grant(pito, met, connect, delegate=True),
        "N1": naming(met, BROKERS, people["MB"], valid=day),
        "Cap2": grant(met, Name(met.public_key, (BROKERS,)), connect),
        "Cap3": grant(met, people["Smith"], connect),
        "Cap1b": grant(pito, ccs, connect, delegate=True),
        "Cap2b": grant(ccs, people["CB"], connect),
        **{f"Cap3b-{who}": grant(ccs, people[who], connect) for who in ("BO", "SO", "CCTV")},
        "Cap4": grant(pito, ccs, install, delegate=True),
        "Cap5": grant(ccs, people["BO"], install),
        "Cap11b": grant(pito, people["TM"], install),
    }


def _type_rights(people: People) -> dict[str, Certificate]:
    pito, met, ccs = people["PITO"], people["Met"], people["CCS"]
    publish, subscribe = Action.PUBLISH, Action.SUBSCRIBE

    def numberplate(*actions: Action, attributes: tuple[str, ...] | None = None, **equal: str) -> Tag:
        return type_right(
            pito.public_key,
            TYPE_NAME,
            actions=actions,
            attributes=None if attributes is None else [ATTRIBUTES[name] for name in attributes],
            constraints=[Constraint(ATTRIBUTES[name], "=", value) for name, value in equal.items()],
        )

    everything = tuple(ATTRIBUTES)
    bo, so, cctv, smith = (people[who] for who in ("BO", "SO", "CCTV", "Smith"))
    return {
        "Cap6": grant(pito, ccs, numberplate(publish, subscribe), delegate=True),
        "Cap7": grant(ccs, bo, numberplate(subscribe, attributes=("numberplate", "timestamp"))),
        "Cap8": grant(ccs, cctv, numberplate(publish, attributes=everything, location="Victoria")),
        "Cap9": grant(ccs, so, numberplate(subscribe, attributes=("location", "timestamp"))),
        "Cap12": grant(pito, met, numberplate(subscribe), delegate=True),
        "Cap13": grant(met, people["MB"], type_right(None, actions=[subscribe])),
        "Cap13b": grant(ccs, people["CB"], type_right(None, actions=[publish, subscribe])),
        "Cap10": grant(met, smith, numberplate(subscribe, attributes=everything, numberplate="AE05 XYZ")),
        "Cap11": grant(pito, people["TM"], numberplate(Action.MANAGE)),
    }
