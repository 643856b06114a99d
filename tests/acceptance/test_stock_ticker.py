"""The stock ticker: an exchange, three firms that paid in advance, and investors that the exchange never hears of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import maia
from maia.errors import MaiaError
from maia.testing import FLOWS, StockWorld, stock_world

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)
CONTRACT_ENDS = datetime(2026, 6, 20, 23, 59, 59, tzinfo=UTC)
ACCOUNTS = {
    "ann": ("firm-a", ("shares", "derivatives")),
    "bob": ("firm-b", ("shares", "derivatives")),
    "bea": ("firm-b", ("shares",)),
    "cem": ("firm-c", ("commodities",)),
}


@pytest.fixture
def market(tmp_path: Path) -> StockWorld:
    """Open four accounts."""
    world = stock_world(tmp_path, now=NOW, contract_ends=CONTRACT_ENDS)
    for account, (firm, flows) in ACCOUNTS.items():
        world.firms[firm].open_account(account, flows, at=NOW)
    return world


def served(market: StockWorld, *, at: datetime) -> dict[str, set[str]]:
    """Tell the flows that each investor's own broker would deliver at an instant."""
    found: dict[str, set[str]] = {}
    for account, (firm, _) in ACCOUNTS.items():
        market.firms[firm].service.beat(at=at)
        domain = maia.open(market.firms[firm].home.path)
        found[account] = set()
        for flow, name in FLOWS.items():
            try:
                domain.deliver_plan(name, client=domain.prove(account), commits=(), at=at)
            except MaiaError:
                continue
            found[account].add(flow)
    return found


@pytest.mark.requirement("24.09")
def test_an_investor_gets_what_its_firm_bought_and_grants(market: StockWorld) -> None:
    """A bought shares only: Ann's derivatives are refused, whatever A signed. B bought both, for its entitled Bob."""
    assert served(market, at=NOW + timedelta(seconds=1)) == {
        "ann": {"shares"}, "bob": {"shares", "derivatives"}, "bea": {"shares"}, "cem": {"commodities"},
    }  # fmt: skip


@pytest.mark.requirement("24.10")
def test_the_day_after_the_contract_every_investor_is_refused(market: StockWorld) -> None:
    """Nobody revokes anything: the firm's certificate has ended, and with it everything that stood on it."""
    assert served(market, at=CONTRACT_ENDS)["ann"] == {"shares"}
    assert served(market, at=CONTRACT_ENDS + timedelta(days=1)) == {account: set() for account in ACCOUNTS}


@pytest.mark.requirement("24.10")
def test_a_hundred_accounts_come_and_go_and_the_exchange_does_not_notice(market: StockWorld) -> None:
    """100 accounts opened and closed at firm B: the exchange's certificates and files are the same; Bob reads on."""
    count = market.exchange_certificates()
    files = sorted(path.name for path in market.exchange.path.rglob("*") if path.is_file())
    firm = market.firms["firm-b"]
    moment = NOW + timedelta(seconds=1)
    names = [f"account-{number}" for number in range(100)]
    firm.open_accounts(dict.fromkeys(names, ("shares",)), at=moment)
    firm.close_accounts(names, at=moment + timedelta(seconds=1))
    assert market.exchange_certificates() == count
    assert sorted(path.name for path in market.exchange.path.rglob("*") if path.is_file()) == files
    assert served(market, at=moment + timedelta(seconds=10))["bob"] == {"shares", "derivatives"}
