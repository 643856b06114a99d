"""Domains, sub-domains and blankets, with the `maia` command: what reaches a broker, and what does not."""

from __future__ import annotations

from itertools import pairwise

import pytest

from maia.testing import Command

T1, T2 = ("--type", "pito/T1"), ("--type", "owner2/T2")


def may(maia: Command, who: str, *right: str, action: str = "subscribe") -> str:
    """Ask whether somebody has a right: `yes`, or why not."""
    ran = maia("explain", "--as", who, *right[:1], f"{right[1]}@1", "--action", action, "--json")
    assert ran.code in (0, 3), ran.err
    return "yes" if ran.code == 0 else str(ran.data["error"])


def give(maia: Command, giver: str, taker: str, *right: str) -> str:
    """Give a right to subscribe."""
    return maia.grant("--from", giver, "--to", taker, *right, "--action", "subscribe")


@pytest.mark.requirement("4.03")
def test_a_sub_domain_never_has_more_than_its_parents(maia_command: Command) -> None:
    """Four levels verify; when the top loses the type, every descendant has lost it."""
    maia = maia_command
    names = ("pito", "corp", "division", "office", "desk")
    maia.keys(*names)
    top = maia.grant("--from", "pito", "--to", "corp", *T1, "--action", "subscribe", "--delegate", "--test", "crl:pito")
    maia.do("statement", "crl", "--from", "pito")
    for giver, taker in pairwise(names[1:]):
        delegate = () if taker == "desk" else ("--delegate",)
        maia.grant("--from", giver, "--to", taker, "--type", "*", "--blanket", *delegate)
    assert {who: may(maia, who, *T1) for who in names[1:]} == dict.fromkeys(names[1:], "yes")
    assert may(maia, "desk", *T1, action="publish") != "yes"
    maia.do("revoke", top[:10], "--yes")
    assert "yes" not in {may(maia, who, *T1) for who in names[1:]}


@pytest.mark.requirement("4.06")
def test_a_blanket_makes_new_rights_of_the_domain_reach_its_brokers(maia_command: Command) -> None:
    """With `*` from Met the broker reads what Met may read; a new certificate for Met is all it takes."""
    maia = maia_command
    maia.keys("pito", "owner2", "met", "mb")
    maia.grant("--from", "met", "--to", "mb", "--type", "*", "--blanket")
    assert may(maia, "mb", *T1) != "yes"
    maia.grant("--from", "pito", "--to", "met", *T1, "--action", "subscribe", "--delegate")
    assert (may(maia, "mb", *T1), may(maia, "mb", *T2) == "yes") == ("yes", False)
    maia.grant("--from", "owner2", "--to", "met", *T2, "--action", "subscribe", "--delegate")
    assert may(maia, "mb", *T2) == "yes"
    assert len(list((maia.home / "certificates").iterdir())) == 3, "one blanket and one certificate an owner"


@pytest.mark.requirement("4.07")
def test_blankets_are_narrowed_by_kind_and_owner(maia_command: Command) -> None:
    """`type:*` does not connect, `network:*` reads no type, and a blanket for PITO's types blocks others'."""
    maia = maia_command
    maia.keys("pito", "owner2", "met", "types", "networks", "pitos")
    network = ("--network", "pito/UK Police Network", "--action", "connect")
    maia.grant("--from", "pito", "--to", "met", *network, "--delegate")
    for owner, right in (("pito", T1), ("owner2", T2)):
        maia.grant("--from", owner, "--to", "met", *right, "--action", "subscribe", "--delegate")
    maia.grant("--from", "met", "--to", "types", "--type", "*", "--blanket")
    maia.grant("--from", "met", "--to", "networks", "--network", "*", "--blanket")
    maia.grant("--from", "met", "--to", "pitos", "--type", "pito/*", "--blanket")

    def connects(who: str) -> bool:
        return maia("explain", "--as", who, *network).code == 0

    found = {who: (connects(who), may(maia, who, *T1) == "yes", may(maia, who, *T2) == "yes")
             for who in ("types", "networks", "pitos")}  # fmt: skip
    assert found == {
        "types": (False, True, True), "networks": (True, False, False), "pitos": (False, True, False),
    }  # fmt: skip


@pytest.mark.requirement("4.08")
def test_a_leaked_certificate_of_a_domain_is_worth_nothing_without_its_blanket(maia_command: Command) -> None:
    """PITO->Met is known to Bob, who has no blanket, and to a broker of CCS, whose blanket is of CCS."""
    maia = maia_command
    maia.keys("pito", "met", "ccs", "bob", "cb", "mb")
    maia.grant("--from", "pito", "--to", "met", *T1, "--action", "subscribe", "--delegate")
    maia.grant("--from", "ccs", "--to", "cb", "--type", "*", "--blanket")
    assert may(maia, "bob", *T1) != "yes"
    assert may(maia, "cb", *T1) == "BROKEN_CHAIN"
    maia.grant("--from", "met", "--to", "mb", "--type", "*", "--blanket")
    assert may(maia, "mb", *T1) == "yes"


@pytest.mark.requirement("4.09")
@pytest.mark.requirement("1.11")
def test_a_group_gets_a_new_right_and_no_blanket_is_revoked(maia_command: Command) -> None:
    """`salary-brokers` is MB1: it may read Salary, MB2 may not, and nothing was withdrawn; names end by themselves."""
    maia = maia_command
    maia.keys("corp", "mb1", "mb2")
    salary = ("--type", "corp/Salary")
    for broker in ("mb1", "mb2"):
        maia.grant("--from", "corp", "--to", broker, "--type", "corp/Public", "--action", "subscribe")
    maia.grant("--from", "corp", "--to", "corp: salary-brokers", *salary, "--action", "subscribe")
    maia.do("name", "add", "salary-brokers", "--from", "corp", "--to", "mb1", "--until", "+1d")
    assert (may(maia, "mb1", *salary), may(maia, "mb2", *salary) == "yes") == ("yes", False)
    assert may(maia, "mb2", "--type", "corp/Public") == "yes"
    assert not any(item["certificates"] for item in maia.do("statement", "show")["statements"])
    later = maia(
        "explain", "--as", "mb1", "--type", "corp/Salary@1", "--action", "subscribe", "--at", "2099-01-01T00:00:00Z"
    )
    assert later.code == 3
