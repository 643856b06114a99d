"""The stock ticker: an exchange sells flows of trades to brokerage firms, and investors are the clients of firms.

Three flows are three event types of one shape. A firm pays in advance, and its certificate ends with the contract; what
its customers may see is the firm's own policy, run by the firm's own access control service. The exchange never hears
of an account.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from maia.access_control import AccessControl, Application, Invitation, Revocation
from maia.authority import Action, Rhythm, type_blanket, type_right
from maia.domain import OwnKeyManager, ensure_keys, open_access_control, prove_key
from maia.encryption import Keyring
from maia.events import EventType, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.kernel import BROKERS
from maia.principals import Certificate, CertificateId, KeySigner
from maia.testing.building import grant, naming
from maia.testing.homes import write_settings
from maia.testing.publishing import publish_here

FLOWS: Mapping[str, str] = MappingProxyType(
    {
        "shares": "exchange.SharesTicker",
        "commodities": "exchange.CommoditiesTicker",
        "derivatives": "exchange.DerivativesTicker",
    }
)
TICKER: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "time": ("7101", "timestamp"),
        "stock": ("7102", "string"),
        "shares": ("7103", "integer"),
        "price": ("7104", "float"),
        "seller": ("7105", "string"),
        "buyer": ("7106", "string"),
    }
)
SHOWN = ("time", "stock", "shares", "price")
"""What firms let their customers see: not who traded."""
CONTRACTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"firm-a": ("shares",), "firm-b": ("shares", "derivatives"), "firm-c": ("commodities",)}
)


def firm_policy(flows: Iterable[str] = FLOWS) -> str:
    """Write a firm's policy: whoever has an account for a flow may follow it.

    >>> print(firm_policy(["shares"]), end="")
    sharesCustomer(self) <- account(self, 'shares')*
    sharesCustomer(who) |- subscribe SharesTicker(time, stock, shares, price)
    """
    lines = []
    for flow in flows:
        lines.append(f"{flow}Customer(self) <- account(self, '{flow}')*")
        lines.append(f"{flow}Customer(who) |- subscribe {FLOWS[flow].rpartition('.')[2]}({', '.join(SHOWN)})")
    return "\n".join(lines) + "\n"


@dataclass(slots=True)
class Firm:
    """A brokerage firm: its home, its service, and its contract with the exchange.

    Attributes:
        name: Of the firm.
        home: Its home, with its broker.
        service: Its access control service, in process.
        contract: The certificates it bought, by flow.
        customers: The keys of its customers, by account.
        kept: The certificates of customers that the firm's broker keeps for them, by account.
    """

    name: str
    home: Home
    service: AccessControl
    contract: dict[str, Certificate]
    customers: dict[str, KeySigner] = field(default_factory=dict)
    kept: dict[str, tuple[CertificateId, ...]] = field(default_factory=dict)

    def open_account(self, name: str, flows: Iterable[str], *, at: datetime) -> tuple[Certificate, ...]:
        """Enrol a customer for flows; the firm's broker keeps its key and the certificates it gets."""
        (handed,) = self.open_accounts({name: flows}, at=at).values()
        for certificate in handed:
            self.home.certificates.add(certificate)
        self.kept[name] = tuple(certificate.certificate_id for certificate in handed)
        self.home.add_key(name, self.customers[name])
        return handed

    def open_accounts(
        self, accounts: Mapping[str, Iterable[str]], *, at: datetime
    ) -> dict[str, tuple[Certificate, ...]]:
        """Enrol many customers for flows at once, each with a key of its own that it proves.

        What they get stands in the firm's register when this returns; they keep it themselves.
        """
        wanted = {name: tuple(flows) for name, flows in accounts.items()}
        codes = self.service.invite_all(
            (
                Invitation(name=name, appointments=tuple(f"account({name}, '{flow}')" for flow in flows))
                for name, flows in wanted.items()
            ),
            at=at,
        )
        signers = {name: KeySigner.generate() for name in wanted}
        applying = [
            Application(
                who=prove_key(self.service, signers[name], nonce=secrets.token_bytes(32), at=at),
                invitation=code,
                roles=tuple(f"{flow}Customer({name})" for flow in flows),
            )
            for (name, flows), code in zip(wanted.items(), codes, strict=True)
        ]
        enrolled = self.service.enrol_all(applying, at=at)
        self.customers |= signers
        return {item.member.name: item.handed.certificates for item in enrolled}

    def close_account(self, name: str, *, at: datetime) -> Revocation:
        """End a customer's account: the firm's own list says so, and nobody else need hear of it."""
        return self.close_accounts([name], at=at)

    def close_accounts(self, names: Iterable[str], *, at: datetime) -> Revocation:
        """End the accounts of many customers at once; all of them are on the firm's list when this returns."""
        closing = tuple(names)
        revocation = self.service.revoke(principals=closing, at=at)
        for name in closing:
            self.customers.pop(name, None)
            self.home.certificates.discard(self.kept.pop(name, ()))
        return revocation


@dataclass(slots=True)
class StockWorld:
    """The exchange and its firms.

    Attributes:
        exchange: The exchange's home; it publishes.
        owner: The exchange's key.
        firms: By name.
        sold: Every certificate that the exchange ever issued to a firm.
    """

    exchange: Home
    owner: KeySigner
    firms: dict[str, Firm]
    sold: list[Certificate]

    def sell(self, firm: Firm, flow: str, *, ends: datetime) -> Certificate:
        """Sell a flow to a firm in advance, up to and including an instant."""
        tag = type_right(self.owner.public_key, FLOWS[flow], actions=[Action.SUBSCRIBE])
        made = grant(self.owner, firm.home.key("firm"), tag, delegate=True, valid=(None, ends))
        firm.home.certificates.add(made)
        firm.contract[flow] = made
        self.sold.append(made)
        return made

    def trade(self, flow: str, stocks: Iterable[str], *, at: datetime) -> int:
        """Let the exchange publish trades of a flow."""
        rows = [
            {"time": at, "stock": stock, "shares": 100 + number, "price": 10.5 + number, "seller": "s", "buyer": "b"}
            for number, stock in enumerate(stocks)
        ]
        return publish_here(self.exchange, FLOWS[flow], rows, as_="ticker", at=at)

    def exchange_certificates(self) -> int:
        """Count what the exchange holds and has sold; accounts must never change it."""
        return len(self.exchange.pool()) + len(self.sold)


def stock_world(root: Path, *, now: datetime, contract_ends: datetime) -> StockWorld:
    """Build the exchange and three firms; the contract of each ends at an instant, to the second.

    Args:
        root: An empty folder.
        now: When it begins.
        contract_ends: The last instant of the contracts.
    """
    owner, broker, ticker = (KeySigner.generate() for _ in range(3))
    definitions = {flow: _definition(owner, name) for flow, name in FLOWS.items()}
    signed = [sign_event_type(item, owner).raw for item in definitions.values()]
    exchange = Home.create(
        root / "exchange", HomeConfig(name="exchange", domain="exchange", log="../log"), broker=broker
    )
    exchange.add_key("exchange", owner)
    exchange.add_key("ticker", ticker)
    publishing = [
        grant(owner, signer, type_right(owner.public_key, name, actions=[Action.PUBLISH]))
        for signer in (broker, ticker)
        for name in FLOWS.values()
    ]
    for certificate in publishing:
        exchange.certificates.add(certificate)
    for raw in signed:
        exchange.types.put(raw, at=now)
    for definition in definitions.values():
        ensure_keys(exchange, OwnKeyManager(exchange), definition, at=now)
    world = StockWorld(exchange, owner, {}, [])
    for name, flows in CONTRACTS.items():
        world.firms[name] = _firm(world, root / name, flows, signed, now=now, ends=contract_ends)
    return world


def _firm(
    world: StockWorld, path: Path, flows: tuple[str, ...], signed: list[bytes], *, now: datetime, ends: datetime
) -> Firm:
    key = KeySigner.generate()
    home = Home.create(path, HomeConfig(name=path.name, domain="firm", log="../log"))
    home.add_key("firm", key)
    home.add_public_key("exchange", world.owner.public_key)
    for raw in signed:
        home.types.put(raw, at=now)
    # The broker has what the firm has, and its customers are the firm's clients.
    home.certificates.add(naming(key, BROKERS, home.broker))
    home.certificates.add(grant(key, home.broker, type_blanket()))
    # Which keys a firm's broker may have is a key manager's question; here it gets all of them.
    home.save_keyring(Keyring.from_bytes(world.exchange.keyring().to_bytes()))
    rhythm = Rhythm(period=timedelta(minutes=1), lead=timedelta(seconds=20))  # longer than a micro-batch takes
    write_settings(home, life=timedelta(days=30), rhythm=rhythm)
    service = open_access_control(home)
    service.apply(firm_policy(), at=now)
    service.beat(at=now)
    firm = Firm(path.name, home, service, {})
    for flow in flows:
        world.sell(firm, flow, ends=ends)
    return firm


def _definition(owner: KeySigner, name: str) -> EventType:
    return EventType(
        name=TypeName(owner.public_key, name, parse_version("1")),
        attributes=tuple(attribute(item, uid, kind) for item, (uid, kind) in TICKER.items()),
    )
