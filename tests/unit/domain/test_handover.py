"""Handing over piece by piece: from any place, in pieces of any size, the same events once and in order."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import maia
from maia.domain import Domain, OutboxPlace, Wanted, delivery_job, hand_over, publish_parts, take_up_subscription
from maia.errors import DeniedError, MalformedError, UsageError
from maia.log import read_audit
from maia.testing import TYPE_NAME, Command, deliver_here, numberplate_homes, publish_here


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    """Deliver 3, then 5, then 1 events to the billing office, each in a commit of the outbox of its own."""
    opened = Domain.open(numberplate_homes(tmp_path_factory.mktemp("handover")).ccs)
    billing, camera = opened.prove("BO"), opened.prove("CCTV")
    take_up_subscription(opened, Wanted(name="billing", as_="BO", type=TYPE_NAME), client=billing)
    number = 0
    for parts in ([2, 1], [4, 1], [1]):
        rows = [
            [{"numberplate": f"P{(number := number + 1)}", "location": "Victoria"} for _ in range(n)] for n in parts
        ]
        assert [part.events for part in publish_parts(opened, camera, rows, type=TYPE_NAME)] == parts
        delivery_job(opened).run_here()
    return opened


@pytest.mark.parametrize("most", [1, 2, 3, 4, 7, 9, 100])
def test_pieces_add_up_to_everything_once(domain: Domain, most: int) -> None:
    """The places between pieces fit together, also through their text."""
    found: list[str] = []
    place, client = OutboxPlace(), domain.prove("BO")
    for _ in range(20):
        piece = hand_over(domain, client, "billing", after=OutboxPlace.parse(str(place)), most=most)
        if not piece.events:
            break
        assert piece.events <= most
        found += [row["numberplate"] for batch in piece.batches for row in batch.to_pylist()]
        place = piece.place
    assert found == [f"P{number}" for number in range(1, 10)]


@pytest.mark.parametrize("taken", range(10))
def test_a_place_may_count_events_behind_it(domain: Domain, taken: int) -> None:
    """Whoever was in the middle of a piece goes on in the middle of it, from the beginning or from a place."""
    client = domain.prove("BO")
    first = hand_over(domain, client, "billing", after=OutboxPlace(), most=2).place
    for place, passed in ((f"+{taken}" if taken else "", taken), (f"{first}+{taken - 2}" if taken > 2 else "", taken)):
        if passed and not place:
            continue
        rest = hand_over(domain, client, "billing", after=OutboxPlace.parse(place), most=100)
        found = [row["numberplate"] for batch in rest.batches for row in batch.to_pylist()]
        assert found == [f"P{number}" for number in range(passed + 1, 10)]


@pytest.mark.parametrize(
    "text", ["7", "1.2", "01.0.0011223344556677", "1.0.0011223344556677+0", "-1.0.", "1.0.xyz", "+"]
)
def test_what_is_no_place_is_refused(text: str) -> None:
    """A place has one spelling."""
    with pytest.raises(MalformedError) as refused:
        OutboxPlace.parse(text)
    assert refused.value.code == "RESUME_TOKEN"


def test_a_place_elsewhere_and_somebody_elses_subscription_are_refused(domain: Domain) -> None:
    """Neither another outbox's place, nor one behind the last event, nor another client's subscription."""
    client = domain.prove("BO")
    for text in ("0.0.0011223344556677", "9.0.0011223344556677", "+10"):
        with pytest.raises(UsageError) as refused:
            hand_over(domain, client, "billing", after=OutboxPlace.parse(text), most=1)
        assert refused.value.code == "RESUME_TOKEN_FOREIGN"
    with pytest.raises(DeniedError):
        hand_over(domain, domain.prove("SO"), "billing", after=OutboxPlace(), most=1)


def test_asking_where_nothing_lies_tells_the_audit_nothing(domain: Domain) -> None:
    """By its own client; another is refused there too, and where something lies it is told."""
    client, path = domain.prove("BO"), domain.home.audit_path
    end = hand_over(domain, client, "billing", after=OutboxPlace(), most=100).place
    before = len(list(read_audit(path)))
    for text in (str(end), "+9"):
        piece = hand_over(domain, client, "billing", after=OutboxPlace.parse(text), most=1)
        assert (piece.events, piece.closed, str(piece.place)) == (0, 0, text)
    with pytest.raises(DeniedError):
        hand_over(domain, domain.prove("SO"), "billing", after=end, most=1)
    assert len(list(read_audit(path))) == before
    assert hand_over(domain, client, "billing", after=OutboxPlace.parse("+8"), most=1).events == 1
    assert len(list(read_audit(path))) > before


def test_every_row_of_every_request_is_accounted_for(domain: Domain) -> None:
    """A request beside another is not answered for it, and a name counts once."""
    camera = domain.prove("CCTV")
    good, bad = {"numberplate": "Q", "location": "Victoria"}, {"numberplate": 7}
    parts: list[list[object]] = [[good, bad], [], ["x", {"y": 1}], [good]]
    done = publish_parts(domain, camera, parts, type=TYPE_NAME, publication="q")
    assert [part.events for part in done] == [1, 0, 0, 1]
    assert [dict(part.refused) for part in done] == [
        {("VALUE_TYPE", "numberplate"): [1]}, {}, {("ROW_MALFORMED", ""): [0], ("NO_ATTRIBUTE", "y"): [1]}, {},
    ]  # fmt: skip
    again = publish_parts(domain, camera, [[good]], type=TYPE_NAME, publication="q")
    assert (again[0].whole.repeated, again[0].whole.commit, again[0].events) == (True, done[0].whole.commit, 2)


def test_a_place_counts_what_was_delivered_when_rights_close_some_of_it(tmp_path: Path) -> None:
    """What one is in the middle of is gone on with: nothing that is still open is lost or comes twice."""
    home = Command(tmp_path / "h")
    home.do("domain", "init", str(home.home))
    home.keys("pito", "cam", "ann")
    home.do("type", "define", "pito/S@1", "--attribute", "plate:string", "--attribute", "place:string")
    grant = ("--from", "pito", "--type", "pito/S", "--action")
    for who, action in (("cam", "publish"), ("broker", "publish,subscribe")):
        home.grant(*grant, action, "--to", who)
    wide = home.grant(*grant, "subscribe", "--to", "ann")
    home.do("deliver", "add", "box", "--as", "ann", "--type", "pito/S")
    places = ["Kent", "Kent", "Oslo", "Oslo", "Kent", "Oslo", "Kent", "Kent"]
    rows = [{"plate": str(number), "place": place} for number, place in enumerate(places)]
    publish_here(maia.open(home.home).home, "pito/S", rows, as_="cam", at=datetime.now(UTC))
    deliver_here(maia.open(home.home).home)
    opened = maia.open(home.home)
    first = hand_over(opened, opened.prove("ann"), "box", after=OutboxPlace(), most=100)
    assert (first.events, first.closed) == (8, 0)
    home.do("revoke", wide, "--yes")
    home.grant(*grant, "subscribe", "--to", "ann", "--attribute", "plate", "--attribute", "place=Kent")
    for taken in range(9):
        seen: list[int] = []
        opened, place = maia.open(home.home), OutboxPlace.parse(f"+{taken}" if taken else "")
        while (piece := hand_over(opened, opened.prove("ann"), "box", after=place, most=3)).events or piece.closed:
            assert not (piece.events and piece.closed)
            seen += [int(row["plate"]) for batch in piece.batches for row in batch.to_pylist()]
            place = OutboxPlace.parse(str(piece.place))
        assert seen == [number for number, town in enumerate(places) if town == "Kent" and number >= taken]
