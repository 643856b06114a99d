"""Subscriptions that a client asks for by name: kept when frames are there, gone on with, and never left behind."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from maia.authority import Action, type_right
from maia.domain import Asked, Client, Domain, read_subscriptions
from maia.domain.wanted import read_wanted
from maia.errors import DeniedError, UsageError, VerificationError
from maia.events import EventType, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.log import read_audit
from maia.principals import KeySigner
from maia.services.gateway import broker
from maia.testing import grant

OWNER = KeySigner(b"o" * 32)
READ = [Action.SUBSCRIBE]


class Frames:
    """Stands where Spark does: gives a frame, or refuses as the source does for an attribute that there is not."""

    def __init__(self, _domain: Domain) -> None:
        """Nothing is kept of the domain."""

    def subscribe(self, asked: Asked, *, starting: str) -> Any:
        """Give a frame for attributes that there are."""
        if asked.attributes == ("nope",):
            raise UsageError("there is no attribute `nope`", code="NO_ATTRIBUTE")
        return starting


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with two types and two readers, of which each may subscribe to both."""
    made = Home.create(tmp_path / "home", HomeConfig(name="home"))
    made.add_public_key("owner", OWNER.public_key)
    for name in ("Report", "Second"):
        event_type = EventType(
            name=TypeName(OWNER.public_key, name, parse_version("1")), attributes=(attribute("text", "1", "string"),)
        )
        made.types.put(sign_event_type(event_type, OWNER).raw, at=datetime(2026, 6, 1, tzinfo=UTC))
    made.certificates.add(grant(OWNER, made.broker, type_right(OWNER.public_key, actions=READ)))
    for reader in ("reader", "other"):
        made.new_key(reader)
        made.certificates.add(grant(OWNER, made.key(reader), type_right(OWNER.public_key, actions=READ)))
    return made


def client(home: Home, name: str = "reader") -> Client:
    """A client of the home, with frames."""
    return Domain(home, engine=Frames).client(name)


def test_a_subscribe_that_raises_keeps_nothing(home: Home) -> None:
    """Neither without an engine nor for an attribute that there is not; the next try has the name."""
    with pytest.raises(UsageError, match="NO_ENGINE"):
        Domain(home).client("reader").subscribe("Report", name="mine")
    reader = client(home)
    with pytest.raises(UsageError, match="NO_ATTRIBUTE"):
        reader.subscribe("Report", name="mine", attributes=["nope"])
    with pytest.raises(UsageError, match="follow a topic without a name"):
        reader.subscribe(topic="owner/Report", name="mine")
    assert read_subscriptions(home.path) == ()
    assert reader.subscribe("Report", name="mine", starting="latest") == "latest"
    assert [item.name for item in read_subscriptions(home.path)] == ["mine"]


def test_the_same_again_goes_on_and_anything_else_is_refused(home: Home) -> None:
    """One subscription is kept, as it was first asked for, for whoever asked for it."""
    reader = client(home)
    reader.subscribe("Report", name="mine", where="text = 'a'")
    kept = read_subscriptions(home.path)
    reader.subscribe("Report", name="mine", where="text = 'a'", attributes="text")
    client(home).subscribe("owner/Report@1", name="mine", where="text = 'a'")
    for other in ({"where": "text = 'b'"}, {"type": "Second", "where": "text = 'a'"}, {}):
        with pytest.raises(UsageError, match="SUBSCRIPTION_EXISTS"):
            reader.subscribe(**{"type": "Report", "name": "mine"} | other)
    with pytest.raises(DeniedError, match="NOT_YOUR_SUBSCRIPTION"):
        client(home, "other").subscribe("Report", name="mine", where="text = 'a'")
    assert len(kept) == 1
    assert read_subscriptions(home.path) == kept


def test_what_a_client_ended_counts_among_its_own(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a network it has only so many, in number and in octets; it gets back what it had, and others go on."""
    domain = Domain(home)
    reader, other = domain.prove("reader"), domain.prove("other")

    def come_and_go(name: str, where: str = "") -> None:
        fields = {"name": name, "type": "Report", "where": where}
        broker.subscribe(domain, reader, fields)
        broker.unsubscribe(domain, reader, fields)

    monkeypatch.setattr("maia.domain.wanted._OF_CLIENT", 3)
    for name in ("a", "b", "c", "c"):
        come_and_go(name)
    with pytest.raises(UsageError, match="TOO_MANY_SUBSCRIPTIONS"):
        come_and_go("d")
    monkeypatch.setattr("maia.domain.wanted._OF_CLIENT", 1000)
    long = f"text = '{chr(0x1D4B3) * 4000}'"
    for number in range(16):
        come_and_go(f"long {number}", long)
    with pytest.raises(UsageError, match="TOO_MANY_SUBSCRIPTIONS"):
        come_and_go("one more", long)
    kept, ended = read_wanted(home.path)
    assert (len(kept), len(ended)) == (0, 3 + 16)
    broker.subscribe(domain, other, {"name": "other", "type": "Report"})
    assert [item.name for item in read_subscriptions(home.path)] == ["other"]


def test_no_file_is_written_that_would_not_be_read(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes: what was kept before stays in force, and nothing is told of what is refused."""
    client(home).subscribe("Report", name="mine")
    rows = len(list(read_audit(home.audit_path)))
    for limit, value in (("_MAX_FILE", 500), ("_MAX_SUBSCRIPTIONS", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(f"maia.domain.wanted.{limit}", value)
            with pytest.raises(UsageError, match="TOO_MANY_SUBSCRIPTIONS"):
                client(home).subscribe("Report", name="more", where=f"text = '{'x' * 400}'")
        assert [item.name for item in read_subscriptions(home.path)] == ["mine"]
    assert len(list(read_audit(home.audit_path))) == rows


def test_whoever_lost_its_right_does_not_go_on(home: Home) -> None:
    """The right is proven anew, also for a subscription that is kept."""
    client(home).subscribe("Report", name="mine")
    for path in (home.path / "certificates").iterdir():
        path.unlink()
    with pytest.raises((DeniedError, VerificationError)):
        client(home).subscribe("Report", name="mine")
