"""Flow tags of two domains: each its own inside, and one name between them, which the tag's owner signs."""

from __future__ import annotations

import shutil
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pathology_world import label

import maia
from maia.errors import MaiaError
from maia.testing import Command, publish_here, read_here

LETTER, PARTS = "uk.nhs.letter", ("number", "patient", "name", "text")
ROW = dict(zip(PARTS, ("1", "7", "Patterson", "large tumour"), strict=True))
T = "https://nhs.example/t/"
IDENTIFIABLE, CLINICAL = f"{T}identifiable", f"{T}clinical"
OURS = f"""
[names]
identifiable = "{IDENTIFIABLE}"
clinical = "{CLINICAL}"
[owners]
"https://nhs.example/" = "domain"
[types."{LETTER}"]
name = {{ S = ["identifiable"] }}
text = {{ S = ["clinical(patient)"] }}
[readers.ali]
S = ["identifiable", "clinical(7)"]
"""


class World:
    """A hospital with letters, and a practice that reads them by its own label policy."""

    def __init__(self, folder: Path) -> None:
        """Make both homes, share the type, and publish one letter."""
        self.brought: list[Path] = []
        self.hospital, self.practice = Command(folder / "hospital"), Command(folder / "practice")
        self.hospital.do("domain", "init", str(self.hospital.home), "--name", "hospital", "--key")
        self.hospital.keys("lab", "ali")
        texts = [word for part in PARTS for word in ("--attribute", f"{part}:string")]
        self.hospital.do("type", "define", f"domain/{LETTER}@1", *texts)
        for who, action in (("broker", "publish"), ("lab", "publish"), ("ali", "subscribe")):
            self.hospital.grant("--from", "domain", "--to", who, "--type", f"domain/{LETTER}", "--action", action)
        self.practice.do("domain", "init", str(self.practice.home), "--name", "practice", "--key")
        self.practice.keys("gp")
        given = ("domain", "invite-peer", "--for", "practice", "--give", f"doctor |- subscribe {LETTER}")
        (folder / "invitation").write_text(str(self.hospital.do(*given)["invitation"]), "utf-8")
        joined = self.practice.do("domain", "connect", str(folder / "invitation"), "--yes", "--reader", "gp")
        (folder / "answer").write_text(str(joined["answer"]), "utf-8")
        self.hospital.do("domain", "connect", str(folder / "answer"), "--yes")
        key = self.hospital.home / "keys" / "domain.pub"
        self.practice.do("key", "import", "nhs", str(key))
        label(self.hospital, OURS)
        publish_here(maia.open(self.hospital.home).home, LETTER, [ROW], as_="lab", at=datetime.now(UTC))

    def name(self, uri: str, *more: str) -> None:
        """Let the hospital say that a name is one of its flow tags, and bring that to the practice."""
        made = self.hospital.do("name", "add", uri, "--from", "domain", "--to", "domain", *more)
        self.brought.append(Path(shutil.copy(made["file"], self.practice.home / "certificates")))

    def received(self) -> str:
        """Give the hospital's labels as it writes them for others."""
        ran = self.hospital("policy", "labels", "--outside", LETTER)
        assert ran.code == 0
        return ran.out

    def theirs(self, readers: str, *, more: str = "") -> None:
        """Write the practice's policy: what it received, its own names, and who reads."""
        own = f'[names]\nward = "https://gp.example/ward"\nwho = "{IDENTIFIABLE}"\nnotes = "{CLINICAL}"\n'
        owners = '[owners]\n"https://nhs.example/" = "nhs"\n"https://gp.example/" = "domain"\n'
        label(self.practice, f"{own}{owners}{self.received()}{more}{readers}")

    def seen(self, who: str = "gp") -> list[object]:
        """Read the letter at the practice: what is closed is none."""
        there = maia.open(self.practice.home)
        there.follow()
        (row,) = read_here(there.home, LETTER, as_=who)
        return [row[part] for part in PARTS]

    def why(self, attribute: str) -> str:
        """Ask the practice why an attribute is closed."""
        return str(maia.open(self.practice.home).explain(LETTER, principal="gp", attribute=attribute))

    def tags(self, command: Command) -> dict[str, tuple[object, object]]:
        """List the flow tags of a home: number and state by URI."""
        found = command.do("policy", "labels", "--names")["tags"]
        return {row["uri"] or row["tag"]: (row["number"], row["state"]) for row in found}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Build both homes once."""
    return World(tmp_path_factory.mktemp("names"))


@pytest.fixture
def names(world: World) -> World:
    """Give the world without names at the practice."""
    while world.brought:
        world.brought.pop().unlink()
    return world


READS_ALL = '[readers.gp]\nS = ["who", "notes(7)"]\n'
OPEN, CLOSED = list(ROW.values()), ["1", "7", None, None]


@pytest.mark.requirement("17.10")
def test_one_name_is_a_tag_of_its_own_in_each_home_and_means_the_same(names: World) -> None:
    """The hospital's labels as it names them outside close and open at the practice what they do at the hospital."""
    assert tomllib.loads(names.received()) == {
        "types": {LETTER: {"name": {"S": [IDENTIFIABLE], "I": []}, "text": {"S": [f"{CLINICAL}(patient)"], "I": []}}}
    }
    names.name(IDENTIFIABLE)
    names.name(CLINICAL)
    names.theirs(READS_ALL)
    here, there = names.tags(names.hospital), names.tags(names.practice)
    assert {here[IDENTIFIABLE][1], there[IDENTIFIABLE][1]} == {"known"}
    assert here[IDENTIFIABLE][0] != there[IDENTIFIABLE][0], "a number is nobody else's"
    assert names.seen() == OPEN
    names.theirs('[readers.gp]\nS = ["who", "notes(8)"]\n')
    assert names.seen() == ["1", "7", "Patterson", None], "another patient's tag"
    names.theirs(f'[readers.gp]\nS = ["{IDENTIFIABLE}", "{CLINICAL}(*)"]\n')
    assert names.seen() == OPEN, "by the name that others use as well"
    names.theirs('[readers.gp]\nS = ["identifiable", "clinical(7)"]\n')
    assert names.seen() == CLOSED, "the hospital's own words mean nothing here"


@pytest.mark.requirement("17.10")
def test_a_name_that_nobody_resolves_denies_and_local_flow_goes_on(names: World) -> None:
    """Without the owner's certificate its tag is closed to everybody, whatever the policy gives; local tags flow."""
    names.theirs(READS_ALL)
    assert names.seen() == CLOSED
    assert "TAG_UNRESOLVED" in names.why("name")
    assert names.tags(names.practice)[IDENTIFIABLE][1] == "TAG_UNRESOLVED"
    names.theirs(f'[readers.gp]\nS = ["{IDENTIFIABLE}", "{CLINICAL}(*)"]\n')
    assert names.seen() == CLOSED, "that the policy gives the name itself is nobody's word for it"
    with pytest.raises(MaiaError, match="FILTER_NOT_AUTHORISED"):
        read_here(maia.open(names.practice.home).home, LETTER, as_="gp", where="name = 'Patterson'")
    # Tags of the practice's own go on, under their own name and under the one that others use.
    local = f'[types."{LETTER}"]\nname = {{ S = ["ward"] }}\ntext = {{ S = ["https://gp.example/ward"] }}\n'
    own = '[names]\nward = "https://gp.example/ward"\n[owners]\n"https://gp.example/" = "domain"\n'
    label(names.practice, f'{own}{local}[readers.gp]\nS = ["ward"]\n')
    assert names.seen() == OPEN
    # One name arrives: what carries it is open, and the other one stays closed.
    names.name(CLINICAL)
    names.theirs(READS_ALL)
    assert names.seen() == ["1", "7", None, "large tumour"]


@pytest.mark.requirement("17.10")
def test_only_the_owners_word_counts_and_only_while_it_holds(names: World) -> None:
    """A certificate of somebody else, one that is over, or one for an address that nobody speaks for opens nothing."""
    names.theirs(READS_ALL)
    made = names.practice.do("name", "add", IDENTIFIABLE, "--from", "domain", "--to", "nhs")
    assert names.seen() == CLOSED, "the practice cannot say it for the hospital"
    Path(made["file"]).unlink()
    now = datetime.now(UTC)
    names.name(IDENTIFIABLE, "--until", (now + timedelta(hours=1)).isoformat())
    assert names.seen()[2] == "Patterson"
    there = maia.open(names.practice.home)
    said = there.explain(LETTER, principal="gp", attribute="name", at=now + timedelta(hours=2))
    assert "TAG_UNRESOLVED" in str(said), "an hour later it is over"
    policy = names.practice.home / "policy" / "labels.toml"
    policy.write_text(policy.read_text("utf-8").replace('"https://nhs.example/" = "nhs"\n', ""), "utf-8")
    assert names.seen() == CLOSED, "nobody speaks for the address"
    policy.write_text(policy.read_text("utf-8").replace("[owners]\n", f'[owners]\n"{T}" = "gone"\n'), "utf-8")
    assert names.seen() == CLOSED, "whoever does is not known here"


def test_a_tag_without_a_name_does_not_leave_and_wrong_names_close_reads(names: World) -> None:
    """What has no name elsewhere cannot be written for others; a policy whose names are none is refused."""
    label(names.hospital, OURS.replace(f'identifiable = "{IDENTIFIABLE}"\n', ""))
    assert names.hospital.refused("policy", "labels", "--outside", LETTER)[1] == "TAG_LOCAL"
    label(names.hospital, OURS)
    assert names.hospital.refused("policy", "labels", "--outside", "uk.nhs.other")[1] == "NO_LABELS"
    for wrong in (
        '[names]\na = "ftp://x/y"\n', '[names]\n"a(b)" = "https://x.example/y"\n',
        '[names]\na = "https://x.example/y"\nb = "https://x.example/y"\n', '[owners]\n"https://x.example" = "nhs"\n',
        '[owners]\n"https://x.example/" = 7\n',
    ):  # fmt: skip
        label(names.practice, wrong)
        assert names.practice.refused("policy", "labels")[1] == "LABELS_UNKNOWN", wrong
