"""Filters that travel sealed: what who serves can read of them, it leaves out; whoever reads nothing serves all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from link_world import PLACE, PLATE, LinkWorld, LogProcess, log_of, make_world, segments, serving_log, smith_reads

import maia
from maia.clients import AddressPolicy, LogClient
from maia.errors import DeniedError
from maia.testing import TYPE_NAME, Command, read_here

LOOPBACK = AddressPolicy(loopback=True)
WANTED, ALL = 7, 100
WISH = f"numberplate = '{PLATE}'"
OTHER = "LD06 ABC"
NUMBERPLATE, LOCATION = b"3265", b"3467"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LinkWorld:
    """Build the domains; of a hundred events seven are of the plate that is wanted."""
    made = make_world(tmp_path_factory.mktemp("filters"), events=0)
    made.publish_rows([OTHER] * 40, [PLATE] * WANTED, [OTHER] * 30, [OTHER] * 23)
    return made


@pytest.fixture(scope="module")
def ccs(world: LinkWorld) -> Iterator[LogProcess]:
    """Serve the log of the congestion charge service, which holds all keys."""
    with serving_log(world.ccs) as service:
        yield service


def met(world: LinkWorld, root: Path, service: LogProcess, key: Path, *filters: str) -> Command:
    """Give a home of the Met with a link that has filters."""
    command = world.reader(root)
    if not (command.home / "keys" / key.name).exists():
        command.do("key", "import", key.stem, str(key))
    wanted = [part for text in filters for part in ("--filter", text)]
    typed = ["--type", TYPE_NAME] if wanted else []
    command.do("link", "add", "there", service.url, "--key", key.stem, *typed, *wanted)
    return command


def ccs_key(world: LinkWorld) -> Path:
    """Tell where the public key of the publisher's broker lies."""
    return world.ccs / "keys" / "CB.pub"


def missing(command: Command) -> list[str]:
    """Let a reader that passes damage by, with an alarm, read all; tell which segments it missed."""
    read_here(maia.open(command.home).home, TYPE_NAME, as_="Smith", lenient=True)
    rows = command.do("audit", "--kind", "alarm")["rows"]
    return [row["reason"] for row in rows if row["reason"].startswith("LOG_FILE")]


# ---------------------------------------------------------------- by content


@pytest.mark.requirement("8.08")
def test_who_holds_the_keys_leaves_out_what_cannot_match_and_nothing_is_lost(
    world: LinkWorld, ccs: LogProcess, tmp_path: Path
) -> None:
    """Of a hundred events seven come; the lane is whole, no alarm is raised, and without the filter the rest comes."""
    reader = met(world, tmp_path, ccs, ccs_key(world), WISH)
    done = reader.do("link", "pull", "there")
    assert (done["events"], done["left"], done["parked"]) == (WANTED, ALL - WANTED, [])
    assert [row["numberplate"] for row in smith_reads(reader.home)] == [PLATE] * WANTED
    assert reader.do("link", "pull", "there")["records"] == 0
    assert reader.do("status")["log"]["parked"] == []
    assert reader("audit", "--kind", "alarm", "--json").data["rows"] == []
    # All records are there, as their origin signed them; what is not there is segments that were said to be unwanted.
    records = {path.name for path in log_of(world.ccs).glob("type=*/origin=*/*.record")}
    assert {path.name for path in log_of(reader.home).glob("type=*/origin=*/*.record")} == records
    reader.do("link", "remove", "there")
    reader.do("link", "add", "there", ccs.url, "--key", "CB")
    reader.do("link", "pull", "there")
    there = {path.name: path.read_bytes() for path in segments(world.ccs)}
    assert {path.name: path.read_bytes() for path in segments(reader.home)} == there
    assert len(smith_reads(reader.home)) == WANTED  # the right of Smith is on that plate


@pytest.mark.requirement("8.08")
def test_what_was_left_out_and_is_wanted_now_comes_or_is_told_to_be_missing(
    world: LinkWorld, ccs: LogProcess, tmp_path: Path
) -> None:
    """Who serves says that seven events are unwanted, and never serves them again: that is no way to hide them."""
    reader = met(world, tmp_path, ccs, ccs_key(world), f"numberplate = '{OTHER}'")
    done = reader.do("link", "pull", "there")
    assert (done["left"], done["missing"], missing(reader)) == (WANTED, 0, [])
    have = {path.name for path in segments(reader.home)}
    (hidden,) = (path for path in segments(world.ccs) if path.name not in have)
    away = hidden.with_suffix(".away")
    hidden.rename(away)
    try:
        reader.do("link", "remove", "there")
        assert missing(reader) == ["LOG_FILE_MISSING"]  # nobody wishes it away any more
        reader.do("link", "add", "there", ccs.url, "--key", "CB")
        for _ in range(2):  # it is tried again, and goes on being told
            ran = reader("link", "pull", "there", "--json")
            assert (ran.code, ran.data["missing"]) == (4, 1)
            assert [item["code"] for item in ran.data["parked"]] == ["LOG_FILE_MISSING"]
        assert reader("link", "status", "--json").code == 4
    finally:
        away.rename(hidden)
    done = reader.do("link", "pull", "there")
    assert (done["missing"], done["parked"]) == (0, [])
    assert len(smith_reads(reader.home)) == WANTED


@pytest.mark.requirement("8.08")
def test_a_note_is_not_forgotten_while_its_record_is_hidden(world: LinkWorld, ccs: LogProcess, tmp_path: Path) -> None:
    """Whoever hides the own record for a while has nothing forgotten by that."""
    reader = met(world, tmp_path, ccs, ccs_key(world), WISH)
    reader.do("link", "pull", "there")
    notes = sorted((reader.home / "left-out").rglob("0*"))
    first = min(log_of(reader.home).glob("type=*/origin=*/*.record"))
    first.rename(first.with_suffix(".away"))
    reader.do("link", "remove", "there")
    reader.do("link", "add", "there", ccs.url, "--key", "CB")
    ran = reader("link", "pull", "there", "--json")
    assert [item["code"] for item in ran.data["parked"]] == ["LANE_GAP"]
    assert notes[0].exists()
    first.with_suffix(".away").rename(first)
    assert reader.do("link", "pull", "there")["parked"] == []
    assert len(segments(reader.home)) == len(segments(world.ccs))


@pytest.mark.requirement("8.08")
def test_a_segment_that_is_missing_without_a_note_is_still_missing(
    world: LinkWorld, ccs: LogProcess, tmp_path: Path
) -> None:
    """Somebody who takes away the segment that was wanted hides nothing by that."""
    reader = met(world, tmp_path, ccs, ccs_key(world), WISH)
    reader.do("link", "pull", "there")
    (segment,) = segments(reader.home)
    assert missing(reader) == []
    segment.unlink()
    assert missing(reader) == ["LOG_FILE_MISSING"]


@pytest.mark.requirement("8.08", "15.10", "15.11")
def test_a_relay_filters_by_what_it_can_read_and_forwards_the_rest(
    world: LinkWorld, ccs: LogProcess, tmp_path: Path
) -> None:
    """Without keys all hundred go on. With the key of the plate a failing plate stops an event, and nothing else."""
    nowhere = f"{WISH} and location = 'Nowhere'"
    for name, labels, filter_, expected in (
        ("keyless", (), WISH, ALL),
        ("some", (NUMBERPLATE,), nowhere, WANTED),
        ("all", (NUMBERPLATE, LOCATION), nowhere, 0),
    ):
        root = tmp_path / name
        kent = world.relay(root, *labels)
        Command(kent).do("link", "add", "ccs", ccs.url, "--key", "CB")
        assert Command(kent).do("link", "pull", "ccs")["events"] == ALL
        with serving_log(kent) as service:
            reader = met(world, root, service, kent / "keys" / "broker.pub", filter_)
            done = reader.do("link", "pull", "there")
        assert (done["events"], done["left"]) == (expected, ALL - expected), name
        assert len(smith_reads(reader.home)) == min(expected, WANTED), name


# ---------------------------------------------------------------- what travels


def sealed(command: Command, text: str, name: str) -> Path:
    """Seal a filter with `maia filter seal`."""
    file = command.home.parent / name
    command.do("filter", "seal", text, "--type", TYPE_NAME, "--out", str(file))
    return file


@pytest.mark.requirement("15.09", "22.14")
def test_a_filter_shows_the_type_and_the_attributes_and_what_it_asks_to_holders_alone(
    world: LinkWorld, tmp_path: Path
) -> None:
    """Two constraints on one attribute are one block, of one length whatever they say; no two sealings are alike."""
    reader, kent = world.reader(tmp_path), Command(world.relay(tmp_path))
    out = tmp_path / "range"
    asked = "numberplate >= 'AE05' and numberplate < 'AE06' and location = 'Victoria'"
    made = reader.do("filter", "seal", asked, "--type", TYPE_NAME, "--out", str(out))
    assert len(made["attributes"]) == len(made["blocks"]) == 2
    (one, two) = (sealed(reader, WISH, name).read_bytes() for name in ("one", "two"))
    longer = sealed(reader, f"numberplate = '{PLATE} and more of it'", "longer").read_bytes()
    assert len(one) == len(two) == len(longer)
    assert len({one, two}) == 2
    assert not any(word.encode() in data for word in (PLATE, PLACE, "AE06") for data in (one, out.read_bytes()))
    (seen,) = kent.do("filter", "weigh", str(out))["filters"]
    assert (seen["state"], seen["filter"], seen["attributes"]) == ("sealed", None, made["attributes"])
    (seen,) = Command(world.ccs).do("filter", "weigh", str(out))["filters"]
    assert (seen["state"], PLACE in seen["filter"]) == ("read", True)


@pytest.mark.requirement("15.12")
def test_holders_pass_on_the_widest_filter_and_the_keyless_pass_on_all(world: LinkWorld, tmp_path: Path) -> None:
    """Filters are compared by what they say, so who cannot read them does not merge them."""
    reader = world.reader(tmp_path)
    files = [str(sealed(reader, text, name)) for text, name in (("numberplate prefix 'AE'", "wide"), (WISH, "narrow"))]
    for name, home, passed in (
        ("holder", world.ccs, [True, False]),
        ("keyless", world.relay(tmp_path / "none"), [True, True]),
        ("other keys", world.relay(tmp_path / "some", LOCATION), [True, True]),
    ):
        told = Command(home).do("filter", "weigh", *files)["filters"]
        assert [item["passed_on"] for item in told] == passed, name


@pytest.mark.requirement("15.10", "22.14")
def test_whoever_lacks_the_keys_makes_no_filter_that_is_taken_and_learns_nothing_by_others(
    world: LinkWorld, ccs: LogProcess, tmp_path: Path
) -> None:
    """A keyless broker cannot seal; what it makes up is dropped by holders; another's filter is not its own to send."""
    reader, kent = world.reader(tmp_path), Command(world.relay(tmp_path))
    seal = ("filter", "seal", WISH, "--type", TYPE_NAME, "--out", str(tmp_path / "own"))
    assert kent.refused(*seal)[1] == "NO_KEY"
    assert (
        kent.refused("link", "add", "x", ccs.url, "--key", "CB", "--type", TYPE_NAME, "--filter", WISH)[1] == "NO_KEY"
    )
    good = sealed(reader, WISH, "good")
    broker, theirs = maia.open(kent.home).home.broker, world.homes.network.key("MB").key_id
    data = good.read_bytes()
    crafted = {
        "its own name on another's": data.replace(theirs, broker.public_key.key_id),
        "another attribute": data.replace(NUMBERPLATE, LOCATION),
        "made up": data[:-40] + bytes(38) + data[-2:],
    }
    for name, raw in crafted.items():
        file = tmp_path / "crafted"
        file.write_bytes(raw)
        ran = Command(world.ccs)("filter", "weigh", str(file), "--json")
        assert "filters" in ran.data, ran.out
        assert (ran.code, ran.data["filters"][0]["state"], ran.data["filters"][0]["passed_on"]) == (4, "forged", False)
        assert name
    (record,) = log_of(world.ccs).glob("type=*/origin=*/000000000000.record")
    name = str(record.relative_to(log_of(world.ccs)))
    kent.do("link", "add", "ccs", ccs.url, "--key", "CB")
    kent.do("link", "pull", "ccs")  # it is let in, and may connect
    with LogClient(ccs.url, signer=broker, server_key=world.broker.public_key, policy=LOOPBACK) as client:
        with pytest.raises(DeniedError):
            client.unwanted(name, [data])
        assert client.unwanted(name, [crafted["its own name on another's"]])[0] == ()  # and not that it is forged
