"""The stock ticker: an exchange, three firms that paid in advance, and investors that the exchange never hears of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.authority import Action
from maia.domain import DeliveryJob, Domain, Wanted, delivery_job, find_type
from maia.testing import FLOWS, StockWorld, stock_world

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)
CONTRACT_ENDS = datetime(2026, 6, 20, 23, 59, 59, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@dataclass
class Market:
    """The world, its delivery jobs, and a clock that the test moves."""

    world: StockWorld
    now: datetime = NOW

    def jobs(self, firm: str) -> DeliveryJob:
        """Deliver to every account of a firm, for every flow."""
        wanted = tuple(
            Wanted(name=f"{account}-{flow}", as_=account, type=FLOWS[flow])
            for account in sorted(self.accounts[firm])
            for flow in FLOWS
        )
        job = delivery_job(Domain.open(self.world.firms[firm].home.path), wanted)
        return replace(job, clock=lambda: self.now)

    def __post_init__(self) -> None:
        """Open accounts: Ann at A and Bob at B want everything, Cem at C commodities, Bea at B shares only."""
        self.accounts: dict[str, set[str]] = {name: set() for name in self.world.firms}
        for firm, account, flows in (
            ("firm-a", "ann", ("shares", "derivatives")),
            ("firm-b", "bob", ("shares", "derivatives")),
            ("firm-b", "bea", ("shares",)),
            ("firm-c", "cem", ("commodities",)),
        ):
            self.world.firms[firm].open_account(account, flows, at=self.now)
            self.accounts[firm].add(account)

    def trade(self) -> None:
        """Let a second pass and every flow have a trade; every firm delivers."""
        self.now += SECOND
        for firm in self.world.firms.values():
            firm.service.beat(at=self.now)
        for number, flow in enumerate(FLOWS):
            self.world.trade(flow, [f"{flow}-stock"], at=self.now + number * SECOND / 100)
        self.now += SECOND / 2
        for name in self.world.firms:
            self.jobs(name).run_here()

    def got(self) -> dict[str, set[str]]:
        """Tell, for each account, the flows of which it got something."""
        found: dict[str, set[str]] = {}
        for name in self.world.firms:
            job = self.jobs(name)
            for account in self.accounts[name]:
                found[account] = {
                    flow
                    for flow in FLOWS
                    if any(batch.num_rows for batch in job.outbox.read(f"{account}-{flow}", job.make_secret()))
                }
        return found

    def count(self) -> int:
        """Count all deliveries."""
        return sum(
            batch.num_rows
            for name in self.world.firms
            for account in self.accounts[name]
            for flow in FLOWS
            for batch in self.jobs(name).outbox.read(f"{account}-{flow}", self.jobs(name).make_secret())
        )


@pytest.fixture
def market(tmp_path: Path) -> Market:
    """Give the market with its four investors."""
    return Market(stock_world(tmp_path, now=NOW, contract_ends=CONTRACT_ENDS))


def test_an_investor_gets_what_its_firm_bought_and_grants(market: Market) -> None:
    """A bought shares only: Ann's derivatives are refused, whatever A signed. B bought both, for its entitled Bob."""
    market.trade()
    assert market.got() == {
        "ann": {"shares"},
        "bob": {"shares", "derivatives"},
        "bea": {"shares"},
        "cem": {"commodities"},
    }
    firm = market.world.firms["firm-a"]
    known = Domain(firm.home).known(at=market.now)
    sessions, pool = known.sessions, known.pool
    name = find_type(firm.home, FLOWS["derivatives"])
    event_type = sessions.event_type(name.type_id, name.version.text, at=market.now)
    assert sessions.clauses(firm.home.key("ann"), Action.SUBSCRIBE, event_type, pool, at=market.now) == ()


def test_an_investor_does_not_see_who_traded(market: Market) -> None:
    """The firm's policy opens four of six attributes."""
    market.trade()
    job = market.jobs("firm-b")
    [row] = [row for batch in job.outbox.read("bob-shares", job.make_secret()) for row in batch.to_pylist()]
    assert (row["stock"], row["shares"], row["seller"], row["buyer"]) == ("shares-stock", 100, None, None)


def test_the_day_after_the_contract_every_investor_of_the_firm_is_refused(market: Market) -> None:
    """Nobody revokes anything: the firm's certificate has ended, and with it everything that stood on it."""
    market.trade()
    before = market.count()
    market.now = CONTRACT_ENDS + timedelta(days=1)
    market.trade()
    assert market.count() == before


def test_a_hundred_accounts_come_and_go_and_the_exchange_does_not_notice(market: Market) -> None:
    """100 accounts opened and closed at firm B: the exchange's certificates are the same, and so is what Bob gets."""
    exchange = market.world.exchange
    before = {item.certificate_id for item in exchange.pool()}
    files = sorted(path.name for path in exchange.path.rglob("*") if path.is_file())
    count = market.world.exchange_certificates()
    firm = market.world.firms["firm-b"]
    for number in range(100):
        firm.open_account(f"account-{number}", ("shares",), at=market.now)
    assert len(firm.service.members(at=market.now)) == 102
    for number in range(100):
        assert firm.close_account(f"account-{number}", at=market.now).members == (f"account-{number}",)
    assert market.world.exchange_certificates() == count
    assert {item.certificate_id for item in exchange.pool()} == before
    assert sorted(path.name for path in exchange.path.rglob("*") if path.is_file()) == files
    market.trade()
    assert market.got()["bob"] == {"shares", "derivatives"}


def test_a_firms_batch_of_accounts_comes_and_goes_in_two_lists(market: Market) -> None:
    """50 accounts in one call and out in another: each had its own certificate, and neither folder keeps any."""
    firm = market.world.firms["firm-b"]
    count, files = market.world.exchange_certificates(), len(list(firm.home.certificates))
    names = [f"night-{number}" for number in range(50)]
    opened = firm.open_accounts(dict.fromkeys(names, ("shares",)), at=market.now)
    assert {item.body.subject for held in opened.values() for item in held} == {
        firm.customers[name].public_key for name in names
    }
    assert {item.raw for held in opened.values() for item in held} <= {
        entry.certificate for entry in firm.service.register(at=market.now)
    }
    closed = firm.close_accounts(names, at=market.now)
    assert closed.members == tuple(names)
    assert {item.certificate_id for item in closed.certificates} == {
        item.certificate_id for held in opened.values() for item in held
    }
    assert (market.world.exchange_certificates(), len(list(firm.home.certificates))) == (count, files)
    market.trade()
    assert market.got()["bob"] == {"shares", "derivatives"}


def test_a_closed_account_gets_nothing_while_others_go_on(market: Market) -> None:
    """Firm B closes Bob's account: its own list says so, Bea goes on."""
    market.trade()
    market.world.firms["firm-b"].close_account("bob", at=market.now)
    market.trade()
    job = market.jobs("firm-b")
    counts = {
        who: sum(batch.num_rows for batch in job.outbox.read(f"{who}-shares", job.make_secret()))
        for who in ("bob", "bea")
    }
    assert counts == {"bob": 1, "bea": 2}
