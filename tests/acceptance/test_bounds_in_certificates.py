"""Bounds travel in certificates: whoever passes a right on may add to them, and nobody loses one."""

from __future__ import annotations

from pathlib import Path

import pytest

import maia
from maia.authority import Action, Bounds, Constraint, ask_cell, parse_tag, row_request, type_right
from maia.encoding import encode, format_advanced, parse_advanced
from maia.errors import MaiaError, TagError
from maia.filters import Bound, BoundKind, TypedFilter, compile_filter
from maia.principals import parse_certificate
from maia.testing import Command, People

TYPE = "pito/uk.gov.pito.Numberplate"
NAME = "uk.gov.pito.Numberplate"
SMITHS, PITOS = "numberplate = 'AE05 XYZ'", "location prefix 'Vic'"

NO_BOUNDS = (
    "(* bound)", "(* bound upper)", "(* bound (upper))", '(* bound (wide ("1" string a)))',
    '(* bound (upper ("1" binary (*))))', '(* bound (upper ("1" string)))',
    '(* bound (lower ("3" integer (* range numeric ge "1" l "9"))))',
    '(* bound (upper ("1" string a) ("1" integer (*))))',
)  # fmt: skip


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Let PITO give the Met a right that it may pass on, within a bound; the Met's own words come on top."""
    home = tmp_path_factory.mktemp("bounds") / "met"
    found = Command(home)
    found.do("domain", "init", str(home))
    found.keys("pito", "force", "smith", "jones", "robin", "spy", "garage", "camera")
    attributes = ("numberplate:string:1", "location:string:2", "speed:integer:3")
    found.do("type", "define", f"{TYPE}@1", *(flag for text in attributes for flag in ("--attribute", text)))
    found.grant("--from", "pito", "--to", "broker", "--type", TYPE, "--action", "publish,subscribe")
    seen = ("--attribute", "numberplate", "--attribute", "location")
    give = ("--type", TYPE, "--action", "subscribe")
    found.grant("--from", "pito", "--to", "force", *give, *seen, "--bound", f"upper ({PITOS})", "--delegate")
    both = ("--bound", f"upper ({SMITHS})", "--bound", f"upper ({PITOS})")
    found.grant("--from", "force", "--to", "smith", *give, *seen, *both)
    found.grant("--from", "force", "--to", "jones", *give, "--blanket")
    found.grant("--from", "force", "--to", "robin", *give, "--bound", f"upper ({SMITHS})", "--blanket")
    return found


def subscribes(met: Command, who: str, where: str) -> bool | str:
    """Ask for a plan, as every reader does: whether there is one, or why not."""
    domain = maia.open(met.home)
    try:
        domain.deliver_plan(NAME, client=domain.prove(who), where=where, commits=())
    except MaiaError as error:
        return error.code
    return True


def publishes(met: Command, who: str, announced: str) -> bool | str:
    """Announce what will be published: whether there is a plan for it, or why not."""
    domain = maia.open(met.home)
    try:
        domain.publish_plan(NAME, client=domain.prove(who), publication="x", advertise=announced)
    except MaiaError as error:
        return error.code
    return True


@pytest.mark.requirement("10.14")
@pytest.mark.requirement("23.13")
@pytest.mark.parametrize(
    "who, where, told",
    [
        ("smith", f"{SMITHS} and location = 'Victoria'", True),
        ("smith", SMITHS, "FILTER_OUT_OF_BOUNDS"),
        ("smith", PITOS, "FILTER_OUT_OF_BOUNDS"),
        ("smith", f"{SMITHS} and location prefix 'V'", "FILTER_OUT_OF_BOUNDS"),
        ("robin", f"{SMITHS} and location = 'Victoria'", True),
        ("robin", SMITHS, "FILTER_OUT_OF_BOUNDS"),
        ("jones", "location = 'Victoria'", True),
        ("jones", "", "FILTER_OUT_OF_BOUNDS"),
        ("force", PITOS, True),
        ("force", "location prefix 'Vi'", "FILTER_OUT_OF_BOUNDS"),
    ],
)
def test_the_bounds_of_a_chain_hold_together(met: Command, who: str, where: str, told: bool | str) -> None:
    """Smith keeps to PITO's bound and to the Met's; who got no further word keeps to PITO's all the same."""
    assert subscribes(met, who, where) == told


@pytest.mark.requirement("10.14")
@pytest.mark.requirement("23.13")
def test_a_certificate_carries_the_bound_and_an_explanation_shows_both(met: Command) -> None:
    """What is signed is the filter itself, by uid; the chain shows what each link adds."""
    ran = met("explain", "--as", "smith", "--type", f"{TYPE}@1", "--action", "subscribe")
    assert ran.code == 0
    assert f"within upper ({PITOS})" in ran.out
    assert f"upper ({SMITHS})" in ran.out
    carried = [
        format_advanced(parse_certificate(path.read_bytes()).body.tag)
        for path in (met.home / "certificates").glob("*.cert")
        if b"bound" in path.read_bytes()
    ]
    assert sum('(* bound (upper ("1" string "AE05 XYZ")))' in text for text in carried) == 1
    given = met.do("policy", "bounds", "--as", "smith", "--type", NAME)["rights"]
    assert [row["bounds"] for row in given] == [f"upper ({SMITHS}) upper ({PITOS})"]


@pytest.mark.requirement("10.14")
@pytest.mark.threat("T67")
@pytest.mark.parametrize("action", ["publish", "subscribe"])
def test_nobody_bounds_by_what_is_closed_to_it(met: Command, action: str) -> None:
    """A bound selects by what it names: one on the speed is refused when it is given, and gives nothing if it is."""
    give = ("--type", TYPE, "--action", action)
    met.grant("--from", "pito", "--to", "garage", *give, "--attribute", "numberplate", "--delegate")
    told = ("--from", "garage", "--to", "spy", *give, "--bound", "lower (speed > 50)")
    assert met.refused("grant", *told) == (3, "SPEAKS_OF_CLOSED")
    met.grant(*told, "--blanket")
    plan = publishes if action == "publish" else subscribes
    assert plan(met, "spy", "numberplate any") == "SPEAKS_OF_CLOSED"
    held = ("--attribute", "numberplate", "--bound", "lower (numberplate any)")
    met.grant("--from", "garage", "--to", "camera", *give, *held)
    assert plan(met, "camera", "numberplate any") is True


def test_whoever_gives_a_domain_a_bounded_right_is_told_what_that_means(met: Command, tmp_path: Path) -> None:
    """Its brokers get no keys; the same right for a client has nothing to warn of."""
    right = ("--from", "pito", "--type", TYPE, "--action", "subscribe", "--bound", "max (numberplate)")
    assert met.do("grant", *right, "--to", "garage", "--delegate", "--yes")["warnings"] == ["UNENFORCEABLE_FOR_DOMAIN"]
    assert met.do("grant", *right, "--to", "garage")["warnings"] == []
    text = maia.open(met.home).grant(
        "garage", f"{TYPE}@*", by="pito", bounds=["upper (speed > 5)", "max (speed)"], attributes=["speed"]
    ).right  # fmt: skip
    assert text.endswith("speed, within strict-lower (speed any) upper (speed > 5)")


@pytest.mark.requirement("10.14")
def test_bounds_are_a_form_of_tags_that_is_read_in_one_way() -> None:
    """What is written is read back as it was; doubles and order make no difference; nonsense is refused."""
    people = People("PITO")
    kinds = {"1": "string", "3": "integer"}
    one, two = (
        Bound(filter=compile_filter(text, kinds), kind=kind)
        for text, kind in (('"1" prefix \'A\' and "3" < 5', BoundKind.UPPER), ('"3" in (1, 2)', BoundKind.STRICT_LOWER))
    )
    assert Bounds.of([one, two, one]) == Bounds.of([two, one])
    form = Bounds.of([one, two]).to_sexp()
    assert parse_tag(parse_advanced(format_advanced(form))).to_sexp() == form
    right = type_right(people["PITO"].public_key, NAME, actions=[Action.PUBLISH], bounds=[one, two])
    assert encode(parse_tag(right.to_sexp()).to_sexp()) == encode(right.to_sexp())
    for text in NO_BOUNDS:
        with pytest.raises(TagError):
            parse_tag(parse_advanced(text))


@pytest.mark.requirement("10.08")
@pytest.mark.requirement("10.11")
def test_a_request_for_one_cell_names_the_use_of_the_right() -> None:
    """A ground request says which row is published, or by which subscription a cell is read."""
    owner = People("PITO")["PITO"].public_key
    cheap = Bound(filter=compile_filter('"3" < 100', {"3": "integer"}), kind=BoundKind.UPPER)
    both = [Action.PUBLISH, Action.SUBSCRIBE]
    right = type_right(owner, NAME, actions=both, bounds=[cheap], constraints=[Constraint("1", "any", ())])
    row, dear = row_request({"1": b"a", "3": b"10"}), row_request({"1": b"a", "3": b"523"})
    within = TypedFilter(constraints=compile_filter('"3" = 7', {"3": "integer"}).constraints)
    assert ask_cell(Action.PUBLISH, owner, NAME, "1", "3", row).admitted_by(right)
    assert not ask_cell(Action.PUBLISH, owner, NAME, "1", "3", dear).admitted_by(right)
    assert ask_cell(Action.SUBSCRIBE, owner, NAME, "1", "3", row, within).admitted_by(right)
    assert not ask_cell(Action.SUBSCRIBE, owner, NAME, "1", "3", row).admitted_by(right)
