"""A link may speak only of what its issuer holds: no narrowing reads, and none writes, what is closed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import maia
from maia.authority import Action, Constraint, type_right
from maia.encoding import format_advanced
from maia.errors import MaiaError
from maia.principals import PublicKey
from maia.testing import Command

NAME = "uk.gov.pito.Sighting"
TYPE = f"pito/{NAME}@1"
SPEED = "77"  # the uid of the speed
EVENTS = {
    "numberplate": pa.array(["AE05 XYZ", "BX51 ABC"]),
    "location": pa.array(["Euston", "Kent"]),
    "speed": pa.array([9137, 30], pa.int64()),
}
SPIES = tuple(f"spy{number}" for number in range(14))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Make a home: the police may pass on the right to read plates, a garage the right to publish them.

    Fast reads the plates of fast cars, by the owner's word, and does not see how fast they were.
    """
    made = Command(tmp_path_factory.mktemp("speech") / "home")
    made.do("domain", "init", str(made.home))
    made.keys("pito", "camera", "garage", "ghost", "met", "reader", "fast", "faster", "plates", *SPIES)
    made.do(
        "type", "define", TYPE, "--encryption", "plain", "--attribute", "numberplate:string:1",
        "--attribute", "location:string:2", "--attribute", f"speed:integer:{SPEED}",
    )  # fmt: skip
    for who, action in (("broker", "publish"), ("broker", "subscribe"), ("camera", "publish"), ("reader", "subscribe")):
        give(made, "pito", who, action)
    give(made, "pito", "met", "subscribe", "numberplate", more=("--delegate",))
    give(made, "pito", "garage", "publish", "numberplate", more=("--delegate",))
    made.grant("--from", "pito", "--to", "fast", "--tag", tag(made, "1", uid77=101), "--root", "pito", "--delegate")
    return made


def give(home: Command, giver: str, to: str, action: str, *attributes: str, more: tuple[str, ...] = ()) -> None:
    """Give a right with `maia grant`."""
    home.grant(*gift(giver, to, action, *attributes), *more)


def gift(giver: str, to: str, action: str, *attributes: str) -> list[str]:
    """Write the arguments of `maia grant`."""
    named = [part for attribute in attributes for part in ("--attribute", attribute)]
    return ["--from", giver, "--to", to, "--type", TYPE, "--action", action, *named]


def tag(home: Command, *uids: str, **demands: Any) -> str:
    """Write a right to read some attributes, chosen by demands on any, in the advanced form."""
    owner = PublicKey.import_(bytes.fromhex(home.do("key", "show", "pito")["keys"][0]["key"]))
    wanted = [Constraint(uid.removeprefix("uid"), ">=", value) for uid, value in demands.items()]
    right = type_right(owner, NAME, "1", actions=[Action.SUBSCRIBE], attributes=uids, constraints=wanted)
    return format_advanced(right.to_sexp())


@pytest.fixture
def published(spark: Any, home: Command) -> None:
    """Publish two sightings, once for all tests of this file."""
    maia.open(home.home).client("camera").publish(pa.table(EVENTS), NAME, publication="two")


def plates(home: Command, who: str) -> list[tuple[Any, ...]]:
    """Read what a client may see."""
    rows = maia.open(home.home).client(who).read(NAME).select("numberplate", "location", "speed").collect()
    return sorted(tuple(row) for row in rows)


def oracle(home: Command, write: Any) -> tuple[range, set[str]]:
    """Ask fourteen times whether the fast car's speed reaches a limit, each time with a right made for it.

    Returns:
        What is still possible, and the codes of what was refused.
    """
    possible, codes = range(2**14), set()
    for spy in SPIES:
        middle = possible[len(possible) // 2]
        write(spy, middle)
        try:
            seen = "AE05 XYZ" in {row[0] for row in plates(home, spy)}
        except MaiaError as error:
            codes.add(error.code)
            continue
        possible = possible[len(possible) // 2 :] if seen else possible[: len(possible) // 2]
    return possible, codes


@pytest.mark.threat("T67")
@pytest.mark.parametrize("by", ["constraint", "condition"])
def test_a_right_that_narrows_by_what_is_closed_starts_no_read(home: Command, by: str) -> None:
    """Before a row is looked at: by the police's word it gives nothing, by the owner's the same words do."""
    limit = (f"speed>={2**13}",) if by == "constraint" else ()
    more = () if by == "constraint" else ("--condition", f'event["{SPEED}"] >= {2**13}')
    home.keys(f"met-{by}", f"pito-{by}")
    give(home, "met", f"met-{by}", "subscribe", "numberplate", *limit, more=("--blanket", *more))
    give(home, "pito", f"pito-{by}", "subscribe", "numberplate", *limit, more=more)
    domain = maia.open(home.home)
    with pytest.raises(MaiaError) as caught:
        domain.deliver_plan(NAME, client=domain.prove(f"met-{by}"), commits=())
    assert caught.value.code == "SPEAKS_OF_CLOSED"
    assert domain.deliver_plan(NAME, client=domain.prove(f"pito-{by}"), commits=()).subscriptions


@pytest.mark.threat("T67")
@pytest.mark.requirement("5.08")
@pytest.mark.requirement("10.14")
@pytest.mark.parametrize("by", ["constraint", "condition"])
def test_fourteen_subscriptions_recover_nothing(published: None, home: Command, by: str) -> None:
    """Who holds plates narrows by a speed that is closed to it: issued over all objections, the rights give nothing."""

    def write(spy: str, limit: int) -> None:
        if by == "constraint":
            give(home, "met", spy, "subscribe", "numberplate", f"speed>={limit}", more=("--blanket",))
        else:
            condition = f'event["{SPEED}"] >= {limit}'
            give(home, "met", spy, "subscribe", "numberplate", more=("--blanket", "--condition", condition))

    possible, codes = oracle(home, write)
    assert codes == {"SPEAKS_OF_CLOSED"}
    assert len(possible) == 2**14


@pytest.mark.requirement("5.08")
def test_issuing_names_the_attribute_and_says_what_to_do(home: Command) -> None:
    """`maia grant` and `Domain.grant` refuse before anything is signed; a filter on it is refused too."""
    for more in (["--attribute", "speed>=50"], ["--condition", f'event["{SPEED}"] >= 50']):
        ran = home("grant", *gift("met", "plates", "subscribe", "numberplate"), *more)
        assert ran.code == 3
        assert "[SPEAKS_OF_CLOSED]" in ran.err
        assert "cannot speak of `speed`, which is closed to it" in ran.err
        assert "hint: constraints and conditions name only what their issuer holds" in ran.err
    with pytest.raises(MaiaError, match="SPEAKS_OF_CLOSED"):
        maia.open(home.home).grant(
            "plates", TYPE, by="met", actions=["subscribe"], attributes=["numberplate", "speed>=50"]
        )
    with pytest.raises(MaiaError, match="FILTER_NOT_AUTHORISED"):
        maia.open(home.home).client("met").read(NAME, where="speed >= 50")


def test_an_explanation_says_who_spoke_of_what(home: Command) -> None:
    """`maia explain` names the link, the attribute and the way out."""
    give(home, "met", "faster", "subscribe", "numberplate", "speed>=50", more=("--blanket",))
    ran = home("explain", "--as", "faster", "--type", TYPE, "--action", "subscribe")
    assert ran.code == 3
    assert "SPEAKS_OF_CLOSED" in ran.out + ran.err
    assert f"speaks of attribute `{SPEED}`, which is closed to it" in ran.out + ran.err
    assert home.refused("subscribe", "--type", NAME, "--as", "faster") == (3, "SPEAKS_OF_CLOSED")


@pytest.mark.requirement("10.14")
def test_a_holder_narrows_by_what_it_holds(published: None, home: Command) -> None:
    """The police choose by the plate, which is open to them, by constraint and by condition; time needs no right."""
    more = ("--condition", "event['1'].startsWith('AE')", "--condition", "now.hour('UTC') >= 0")
    give(home, "met", "plates", "subscribe", "numberplate>='AA'", more=more)
    assert plates(home, "plates") == [("AE05 XYZ", None, None)]


def test_the_owner_speaks_of_all_and_binds_those_below(published: None, home: Command) -> None:
    """Fast sees the plates of fast cars; it may repeat the demand on the closed speed, and not sharpen it."""
    assert plates(home, "fast") == [("AE05 XYZ", None, None)]
    sharper = ("--from", "fast", "--to", "faster", "--tag", tag(home, "1", uid77=102), "--root", "pito")
    assert home.refused("grant", *sharper) == (3, "SPEAKS_OF_CLOSED")
    home.grant("--from", "fast", "--to", "faster", "--tag", tag(home, "1", uid77=101), "--root", "pito")
    assert plates(home, "faster") == [("AE05 XYZ", None, None)]


def test_no_right_forces_a_value_that_its_issuer_may_not_set(spark: Any, home: Command) -> None:
    """A garage that may say plates alone makes a right that forges place and speed: nothing leaves under it."""
    forged = ("numberplate", "location='FORGED'", "speed=250")
    assert home.refused("grant", *gift("garage", "ghost", "publish", *forged)) == (3, "SPEAKS_OF_CLOSED")
    give(home, "garage", "ghost", "publish", *forged, more=("--blanket",))
    ghost = maia.open(home.home).client("ghost")
    with pytest.raises(MaiaError, match="SPEAKS_OF_CLOSED"):
        ghost.publish(pa.table({"numberplate": ["GH05 TLY"]}), NAME)
    assert "GH05 TLY" not in {row[0] for row in plates(home, "reader")}
    assert "FORGED" not in {row[1] for row in plates(home, "reader")}


def test_the_owner_forces_a_value_that_the_publisher_may_not_set(spark: Any, home: Command) -> None:
    """The van stands at Victoria by the owner's word; whom it sends there stands there too."""
    home.keys("van", "driver")
    give(home, "pito", "van", "publish", "numberplate", "location='Victoria'", more=("--delegate",))
    give(home, "van", "driver", "publish", "numberplate", "location='Victoria'")
    driver = maia.open(home.home).client("driver")
    driver.publish(pa.table({"numberplate": ["VA05 VAN"], "location": ["Euston"]}), NAME)
    assert ("VA05 VAN", "Victoria", None) in plates(home, "reader")
