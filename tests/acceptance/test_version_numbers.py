"""Version numbers and uids: who may number without asking, and what is refused to those who should have asked."""

from __future__ import annotations

import operator
import random
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from maia.errors import UnavailableError
from maia.events import (
    FIRST,
    FoldedUids,
    SequenceUids,
    Version,
    uuid_version,
)
from maia.testing import Command

NAME = "uk.gov.pito.Numberplate"
PLATE = f"pito/{NAME}"
ATTRIBUTES = (
    "--attribute",
    "numberplate:string",
    "--attribute",
    "timestamp:timestamp",
    "--attribute",
    "location:string",
)


class Managers:
    """PITO with version 0 of its type, and two managers in homes that share nothing, each with a chain of its own."""

    def __init__(self, root: Path) -> None:
        """Make the homes; the second manager has its right by way of the Met."""
        self.root = root
        self.pito, self.homes = Command(root / "pito"), {name: Command(root / name) for name in ("tm1", "tm2")}
        self.pito.keys("pito", "met")
        self.first = self.pito.do("type", "define", PLATE, *ATTRIBUTES, "--out", str(root / "first.type"))
        manage = ("--type", PLATE, "--action", "manage", "--irrevocable")
        certificates = [self.pito.do("grant", "--from", "pito", "--to", "met", *manage, "--delegate")["file"]]
        for name, home in self.homes.items():
            home.keys(name)
            home.do("key", "import", "pito", str(self.pito.home / "keys" / "pito.pub"))
            self.pito.do("key", "import", name, str(home.home / "keys" / f"{name}.pub"))
            giver = "pito" if name == "tm1" else "met"
            made = self.pito.do("grant", "--from", giver, "--to", name, *manage)["file"]
            for file in (made,) if name == "tm1" else (*certificates, made):
                home.do("cert", "add", file)
            home.do("type", "add", str(root / "first.type"))

    def release(self, name: str, *changes: str) -> dict[str, Any]:
        """Let a manager make a version of version 0; its file is kept beside the homes."""
        file = str(self.root / f"{name}.type")
        return self.homes[name].do("type", "evolve", f"{PLATE}@0", *changes, "--as", name, "--out", file)

    def versions(self) -> set[str]:
        """List the versions that PITO's home keeps."""
        return {row["version"] for row in self.pito.do("type", "show")["types"]}


@pytest.fixture
def managers(tmp_path: Path) -> Managers:
    """Give PITO and its two managers."""
    return Managers(tmp_path)


@pytest.mark.requirement("3.03")
def test_two_managers_release_without_a_word_and_one_manager_counts(managers: Managers) -> None:
    """The first is 0. Two that never meet draw two UUIDs, which live side by side; two that count clash; one may."""
    assert managers.first["version"] == "0"
    change = ("--add", "speed:integer")
    made = [managers.release(name, *change)["version"] for name in managers.homes]
    assert len({uuid.UUID(version) for version in made}) == 2
    for name in managers.homes:
        managers.pito.do("type", "add", str(managers.root / f"{name}.type"))
    assert managers.versions() == {"0", *made}
    for name in managers.homes:
        assert managers.release(name, *change, "--number", "counter")["version"] == "1"
    managers.pito.do("type", "add", str(managers.root / "tm1.type"))
    assert managers.pito.refused("type", "add", str(managers.root / "tm2.type"))[1] == "VERSION_TAKEN"
    second = ("type", "evolve", f"{PLATE}@1", "--add", "lane:integer", "--number", "counter")
    assert managers.pito.do(*second)["version"] == "2"
    after = ("type", "evolve", f"{PLATE}@{made[0]}", "--add", "lane:integer", "--number", "counter")
    assert managers.pito.refused(*after)[1] == "VERSION_FORM", "there is no next one after a UUID"


@pytest.mark.requirement("3.03")
def test_versions_are_equal_or_not_and_never_earlier(managers: Managers) -> None:
    """Neither UUIDs nor counters compare, and a right speaks of one version or of all, not of those from one on."""
    one, two = uuid_version(), uuid_version()
    assert one != two
    assert FIRST.text == "0"
    for pair in ((one, two), (Version("1"), Version("2"))):
        for compare in (operator.lt, operator.le, operator.gt, operator.ge):
            with pytest.raises(TypeError):
                compare(*pair)
        with pytest.raises(TypeError):
            sorted(pair)  # type: ignore[type-var]
    give = ("grant", "--from", "pito", "--to", "met", "--action", "subscribe", "--type")
    for wrong in (">=0", "<5"):
        assert managers.pito.refused(*give, f"{PLATE}@{wrong}")[1] == "VERSION_PATTERN"
    managers.pito.grant(*give[1:], f"{PLATE}@0")


@pytest.mark.requirement("3.04")
def test_managers_who_arrive_at_equal_attributes_arrive_at_one_version(managers: Managers) -> None:
    """Different chains, signers and files, one number, which PITO keeps once; one attribute more is another number."""
    made = {
        "tm1": managers.release("tm1", "--add", "speed:integer:x77", "--number", "hash"),
        "tm2": managers.release("tm2", "--add", "speed:integer:x77", "--number", "hash", "--embed"),
    }
    one, two = made.values()
    assert one["credentials"] != two["credentials"]
    assert len(two["credentials"]) == 2
    assert one["definition_id"] != two["definition_id"]
    assert one["version"] == two["version"]
    assert one["previous"] == two["previous"] == managers.first["definition_id"]
    for name in made:
        managers.pito.do("type", "add", str(managers.root / f"{name}.type"))
    assert managers.versions() == {"0", one["version"]}
    evolve = ("type", "evolve", f"{PLATE}@0", "--number", "hash")
    more = managers.pito.do(*evolve, "--add", "lane:integer:x78")
    renamed = managers.pito.do(*evolve, "--rename", "location=place")
    assert len({one["version"], more["version"], renamed["version"]}) == 3


@pytest.mark.requirement("3.04")
def test_a_part_of_manage_needs_the_version_before(managers: Managers, tmp_path: Path) -> None:
    """A new version that refers to one that is nowhere to be found is refused; embedded, or found, it is accepted."""
    managers.pito.keys("adder")
    managers.pito.grant("--from", "pito", "--to", "adder", "--type", PLATE, "--action", "addAttribute", "--irrevocable")
    evolve = ("type", "evolve", f"{PLATE}@0", "--add", "speed:integer", "--as", "adder", "--out")
    referring, embedding = (str(tmp_path / f"{name}.type") for name in ("referring", "embedding"))
    managers.pito.do(*evolve, referring)
    managers.pito.do(*evolve, embedding, "--embed")
    reader = Command(tmp_path / "reader")
    reader.keys("reader")
    assert reader.refused("type", "add", referring)[0] == 4
    reader.do("type", "add", embedding)
    reader.do("type", "add", str(tmp_path / "first.type"))
    reader.do("type", "add", referring)


def folded(octets: bytes, length: int) -> str:
    """Fold a UUID, as an independent sum over whole numbers would."""
    parts = [octets[start : start + length].ljust(length, b"\0") for start in range(0, 16, length)]
    whole = 0
    for part in parts:
        whole ^= int.from_bytes(part)
    return f"x{whole:0{2 * length}x}"


@pytest.mark.requirement("3.05")
@pytest.mark.parametrize("remainder", [False, True], ids=["folded", "cut"])
def test_folded_uuids_are_distinct_and_uniform(remainder: bool) -> None:
    """100 UUIDs made 4 octets are distinct, and their digits, and many octets more, pass chi-square at 1 %."""
    chance = random.Random(720)
    drawn: list[uuid.UUID] = []

    def source() -> uuid.UUID:
        drawn.append(uuid.UUID(bytes=chance.randbytes(16), version=4))
        return drawn[-1]

    policy = FoldedUids(octets=4, remainder=remainder, source=source)
    made = [policy.next_uid(frozenset()) for _ in range(100)]
    assert made == [f"x{item.int % 2**32:08x}" if remainder else folded(item.bytes, 4) for item in drawn]
    assert len(set(made)) == 100
    digits = Counter(digit for uid in made for digit in uid[1:])
    assert sum((digits[f"{value:x}"] - 50) ** 2 / 50 for value in range(16)) < 30.6  # the 1 % point, 15 degrees
    counts = Counter(octet for _ in range(5000) for octet in bytes.fromhex(policy.next_uid(frozenset())[1:]))
    expected = 5000 * 4 / 256
    assert sum((counts[octet] - expected) ** 2 / expected for octet in range(256)) < 310.5  # the same, 255 degrees
    taken = {f"x{value:02x}" for value in range(256)}
    with pytest.raises(UnavailableError, match="UIDS_EXHAUSTED"):
        FoldedUids(octets=1, remainder=remainder, source=source).next_uid(taken)


@pytest.mark.requirement("3.05")
def test_uids_are_short_at_first_and_then_as_long_as_their_manager_says(maia_command: Command) -> None:
    """0, 1, 2; a hundred of 4 octets; then 6 cut off, then counted on, then whole: each version as it likes."""
    home = maia_command
    home.keys("pito")
    first = home.do("type", "define", PLATE, *ATTRIBUTES)
    assert [item["uid"] for item in first["attributes"]] == ["0", "1", "2"]
    taken = {"0", "1", "2"}

    def added(version: int, count: int, *uids: str) -> list[str]:
        names = [flag for number in range(count) for flag in ("--add", f"a{version}-{number}:string")]
        made = home.do("type", "evolve", f"{PLATE}@{version}", *names, "--number", "counter", *uids)
        fresh = [item["uid"] for item in made["attributes"] if item["name"].startswith(f"a{version}-")]
        assert len(set(fresh)) == count
        assert taken.isdisjoint(fresh)
        taken.update(fresh)
        return fresh

    assert {len(bytes.fromhex(uid[1:])) for uid in added(0, 100, "--uids", "folded:4")} == {4}
    assert {len(bytes.fromhex(uid[1:])) for uid in added(1, 10, "--uids", "remainder:6")} == {6}
    assert added(2, 2, "--uids", "sequence") == ["3", "4"]
    assert {len(uuid.UUID(uid).bytes) for uid in added(3, 2, "--uids", "uuid")} == {16}
    assert {len(bytes.fromhex(uid[1:])) for uid in added(4, 2)} == {8}
    more = ("type", "evolve", f"{PLATE}@0", "--add", "b:string", "--uids")
    for wrong in ("folded:0", "folded:16", "folded:4.5", "remainder", "sequence:4", "random"):
        assert home.refused(*more, wrong) == (2, "UID_POLICY"), wrong
    assert home.refused("type", "evolve", f"{PLATE}@0", "--add", "b:string:1")[1] == "UID_REUSED"
    assert SequenceUids().next_uid({"0", "1", "x7f"}) == "2"
