"""`maia demo detective` and `maia demo stock`: revocation on live streams of Spark, told by what they brought."""

from __future__ import annotations

from typing import Any

import pytest

from demos import check_picture, play

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


def test_the_detective_loses_his_stream_in_three_ways_and_gets_it_back(script: Any) -> None:
    """Nothing sighted after a withdrawal arrives, though the stream goes on; each new start is a new certificate."""
    facts = play("detective")
    assert facts["certificate_is_cap10"] is True
    first, assigned, *rest = facts["phases"]
    assert (first["refused"], first["received"]) == ("ROLE_REFUSED", 0)
    assert assigned["received"] == assigned["sighted"] > 0
    losses, returns = rest[0::2], rest[1::2]
    assert [phase["title"] for phase in losses] == [
        "removed from the case",
        "detective status lost",
        "court order revoked",
    ]
    for phase in losses:
        assert phase["received_after_withdrawal_seconds"] <= phase["printed_window_seconds"] <= 80
        assert phase["received"] == 0
    assert all(phase["received"] == phase["sighted"] > 0 for phase in returns)
    assert len({phase["certificate"] for phase in (assigned, *returns)}) == 4
    check_picture(script("pictures"), "detective", facts)


def test_the_flows_of_the_exchange_end_with_the_contract_and_accounts_leave_no_trace(script: Any) -> None:
    """Each investor reads what its firm bought; after the end nobody does; 100 accounts cost the exchange nothing."""
    facts = play("stock")
    trades = facts["trades_published_per_flow"]
    assert facts["received"] == {
        "ann": {"shares": trades, "derivatives": "NOT_PERMITTED"},
        "bob": {"shares": trades, "derivatives": trades},
        "cem": {"commodities": trades},
    }
    assert facts["live_stream"] == {"before": trades, "after": 0}
    refused = {code for flows in facts["received_after_contract"].values() for code in flows.values()}
    assert refused <= {"EXPIRED", "NOT_PERMITTED", "WRONG_ROOT"}
    assert facts["accounts_opened_and_closed"] == 100
    assert facts["exchange_certificates"]["before"] == facts["exchange_certificates"]["after"]
    check_picture(script("pictures"), "stock", facts)
