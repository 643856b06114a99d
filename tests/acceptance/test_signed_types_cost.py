"""What a signed type costs a publication: its signature is verified for a plan, never for an event (row 21.10)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

import maia
from maia.errors import MaiaError
from maia.testing import TYPE_NAME, numberplate_homes, publish_here

NOISE = 2.0


def verifications(work: Callable[[], object]) -> int:
    """Count how often libsodium is asked to verify a signature while something is done."""
    asked = []

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "crypto_sign_open":
            asked.append(event)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(before)
    return len(asked)


def sightings(events: int) -> list[dict[str, object]]:
    """Make rows."""
    when = datetime(2026, 6, 1, tzinfo=UTC)
    return [{"numberplate": f"AE05 {number}", "timestamp": when, "location": "Victoria"} for number in range(events)]


@pytest.mark.requirement("21.10")
def test_the_signature_of_a_type_is_within_the_noise_of_a_publication(repository: Path) -> None:
    """The page of the pipeline: verifying the definition takes less than 2 % of enforcing and sealing 16,384 events."""
    page = (repository / "docs/reference/benchmarks/pipeline.md").read_text("utf-8")
    (share,) = re.findall(r"the signature is ([\d.]+)% of a publication of that size", page)
    assert "sealing 16,384 events" in page
    assert float(share) <= NOISE


@pytest.mark.requirement("21.10")
def test_throughput_under_a_signed_type_is_that_under_a_plain_one(repository: Path) -> None:
    """Both in one run, taking turns: publications under a type that is verified, over those under one that is not."""
    page = " ".join((repository / "docs/reference/benchmarks/trust.md").read_text("utf-8").split())
    (found,) = re.findall(r"throughput with the signed type is ([\d.]+)% of that without", page)
    assert abs(float(found) - 100) <= NOISE


@pytest.mark.requirement("21.10")
def test_more_events_verify_no_more_signatures(tmp_path: Path) -> None:
    """Ten events or two thousand by one plan verify the same; and a living domain's next plan verifies nothing."""
    found = set()
    for events in (10, 2_000):
        homes, now = numberplate_homes(tmp_path / str(events)), datetime.now(UTC)
        with maia.open(homes.ccs) as ccs:
            camera, plans = ccs.prove("CCTV"), []
            make = partial(ccs.publish_plan, TYPE_NAME, client=camera, publication="p", at=now)
            assert verifications(lambda plans=plans, make=make: plans.append(make())) > 0  # type: ignore[misc]
            assert verifications(make) == 0
            publish = partial(publish_here, as_="CCTV", plan=plans[0], publication="p", at=now)
            found.add(verifications(partial(publish, ccs.home, TYPE_NAME, sightings(events))))
    assert len(found) == 1


@pytest.mark.requirement("21.10")
def test_a_definition_that_does_not_verify_publishes_nothing(tmp_path: Path) -> None:
    """What is not verified for each event is verified: with one octet changed there is no plan at all."""
    homes = numberplate_homes(tmp_path)
    (file,) = (path for path in (homes.ccs / "types").rglob("*") if path.is_file() and b"location" in path.read_bytes())
    raw = file.read_bytes()
    file.write_bytes(raw.replace(b"location", b"lOcation"))
    with maia.open(homes.ccs) as ccs, pytest.raises(MaiaError):
        ccs.publish_plan(TYPE_NAME, client=ccs.prove("CCTV"), publication="p")
    file.write_bytes(raw)
    with maia.open(homes.ccs) as ccs:
        assert ccs.publish_plan(TYPE_NAME, client=ccs.prove("CCTV"), publication="p")
