"""Rights mean exactly what is written: no tag is read back as a wider one, and no limit is rounded."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import maia
from maia.authority import Action, Constraint, type_right
from maia.encoding import format_advanced
from maia.principals import PublicKey
from maia.testing import Command

NAME = "lab.Reading"
TYPE = f"lab/{NAME}@1"
STARRED = ('((* set "*"))', '((* set "*") read)', '(ftp ((* set "*")))', '(ftp (* where ("7" ((* set "*")))))')


@pytest.mark.requirement("5.08")
@pytest.mark.parametrize("text", STARRED)
def test_a_list_that_starts_with_a_star_is_not_the_tag_of_everything(maia_command: Command, text: str) -> None:
    """`((* set "*"))` was written as `(*)`: what the verifier denied, others would have read as every right."""
    lines = [{"id": 1, "verb": "tag.intersect", "a": text, "b": "(*)"}]
    ran = maia_command("conformance", stdin="".join(json.dumps(line) + "\n" for line in lines))
    assert [line["result"] for line in ran.lines] == [None]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Make a home with readings: a float and a decimal."""
    made = Command(tmp_path_factory.mktemp("exact") / "home")
    made.do("domain", "init", str(made.home))
    made.keys("lab", "meter", "above", "zeros")
    made.do(
        "type", "define", TYPE, "--encryption", "plain", "--attribute", "ratio:float:1",
        "--attribute", "dose:decimal:2", "--attribute", "name:string:3",
    )  # fmt: skip
    for who, action in (("broker", "publish"), ("broker", "subscribe"), ("meter", "publish")):
        made.grant("--from", "lab", "--to", who, "--type", TYPE, "--action", action)
    return made


def read(home: Command, who: str, *demands: Constraint) -> list[str]:
    """Give a client the right to read under demands, and read the names."""
    owner = PublicKey.import_(bytes.fromhex(home.do("key", "show", "lab")["keys"][0]["key"]))
    right = type_right(owner, NAME, "1", actions=[Action.SUBSCRIBE], constraints=demands)
    home.grant("--from", "lab", "--to", who, "--tag", format_advanced(right.to_sexp()), "--root", "lab")
    return sorted(row["name"] for row in maia.open(home.home).client(who).read(NAME).collect())


@pytest.mark.requirement("5.10")
def test_limits_are_not_rounded_and_trailing_zeros_are_no_part_of_a_value(spark: Any, home: Command) -> None:
    """A limit between two floats admits the upper one only; 2.50 is 2.5 to a prefix."""
    rows = {
        "ratio": pa.array([1.0, 1.5]),
        "dose": pa.array([Decimal("2.50"), Decimal("2.05")], pa.decimal128(38, 18)),
        "name": ["one", "more"],
    }
    maia.open(home.home).client("meter").publish(pa.table(rows), NAME, publication="readings")
    assert read(home, "above", Constraint("1", ">=", Decimal("1.0000000000000000001"))) == ["more"]
    assert read(home, "zeros", Constraint("2", "suffix", "5")) == ["more", "one"]
