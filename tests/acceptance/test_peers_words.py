"""What people are told about partners: who loses what, and nothing to outsiders."""

from __future__ import annotations

from pathlib import Path

from peer_world import Peers


def test_an_outsider_learns_nothing_of_partners(tmp_path: Path) -> None:
    """A key without any right is denied alike, before a partner is connected and afterwards."""
    world = Peers(tmp_path)
    world.clinic.keys("mallory")
    asked = ("explain", "--as", "mallory", "--type", "domain/Result", "--action", "subscribe")
    before = world.clinic.refused(*asked)
    world.connect()
    assert world.clinic.refused(*asked) == before
    assert before[1] == "NO_EVIDENCE"
    shown = world.clinic(*asked)
    assert "st-marys" not in shown.out + shown.err


def test_the_end_of_a_connection_says_who_loses_what_and_by_when(tmp_path: Path) -> None:
    """As `revoke` does: the agreed rights, each certificate, and the worst case as an instant."""
    world = Peers(tmp_path)
    world.connect()
    ran = world.clinic("domain", "disconnect", "st-marys", "--yes")
    assert ran.code == 0
    assert "St Mary's loses subscribe Result(ward, value), which its researcher had" in ran.out
    assert ran.out.count("worst case") == 2
    assert "at once where the list is heard, by 20" in ran.err
