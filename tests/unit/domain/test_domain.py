"""A home, opened: what is looked at again, what is not, and who may act as a client."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.authority import Action, type_right
from maia.domain import Domain, find_type, show_type
from maia.errors import KeyFormatError, MaiaError, NotFoundError, UsageError, VerificationError
from maia.events import EventType, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.principals import KeySigner
from maia.testing import grant

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
OWNER, OTHER = KeySigner(b"o" * 32), KeySigner(b"p" * 32)


def define(home: Home, owner: KeySigner, *, name: str = "Report", version: str = "1") -> None:
    """Let a home keep a signed type."""
    event_type = EventType(
        name=TypeName(owner.public_key, name, parse_version(version)), attributes=(attribute("text", "1", "string"),)
    )
    home.types.put(sign_event_type(event_type, owner).raw, at=NOW)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with two owners' keys, a reader and one type."""
    made = Home.create(tmp_path / "home", HomeConfig(name="home"))
    made.add_public_key("owner", OWNER.public_key)
    made.add_public_key("other", OTHER.public_key)
    made.new_key("reader")
    define(made, OWNER)
    made.certificates.add(grant(OWNER, made.broker, type_right(OWNER.public_key, actions=[Action.SUBSCRIBE])))
    return made


def test_nothing_is_verified_again_while_files_stay_as_they_are(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same snapshot, and no look into the registry, however often it is asked for."""
    domain = Domain(home)
    first = domain.known(at=NOW)
    monkeypatch.setattr("maia.domain.types.verify_with_registry", lambda *_, **__: pytest.fail("verified again"))
    assert domain.known(at=NOW + timedelta(days=1)) is first


def test_a_new_certificate_and_a_new_type_are_seen_at_the_next_look(home: Home) -> None:
    """What somebody else puts into the home counts without reopening it."""
    domain = Domain(home)
    client = home.key("reader")
    with pytest.raises(VerificationError):
        domain.deliver_plan("Report", client=domain.prove("reader"), commits=(), at=NOW)
    right = type_right(OWNER.public_key, "Report", actions=[Action.SUBSCRIBE])
    home.certificates.add(grant(OWNER, client, right))
    assert domain.deliver_plan("Report", client=domain.prove("reader"), commits=(), at=NOW).subscriptions[0].clauses
    define(home, OWNER, name="Second")
    assert domain.event_type("Second", at=NOW).name.name == "Second"


def test_a_removed_certificate_is_missed_at_the_next_look(home: Home) -> None:
    """No cache keeps what the folder lost."""
    made = grant(OWNER, home.key("reader"), type_right(OWNER.public_key, "Report", actions=[Action.SUBSCRIBE]))
    home.certificates.add(made)
    domain = Domain(home)
    domain.deliver_plan("Report", client=domain.prove("reader"), commits=(), at=NOW)
    home.certificates.remove(made.certificate_id)
    with pytest.raises(VerificationError):
        domain.deliver_plan("Report", client=domain.prove("reader"), commits=(), at=NOW)


def test_time_alone_ends_a_right_in_an_open_domain(home: Home) -> None:
    """Nothing changes on disk, and the right is over all the same."""
    right = type_right(OWNER.public_key, "Report", actions=[Action.SUBSCRIBE])
    home.certificates.add(grant(OWNER, home.key("reader"), right, valid=(None, NOW + timedelta(hours=1))))
    domain = Domain(home)
    domain.deliver_plan("Report", client=domain.prove("reader"), commits=(), at=NOW)
    with pytest.raises(VerificationError):
        domain.deliver_plan("Report", client=domain.prove("reader"), commits=(), at=NOW + timedelta(hours=2))


def test_a_type_is_found_by_what_is_clear(home: Home) -> None:
    """Owner and version may be left out where one fits; two owners of one name are told apart by the owner."""
    assert find_type(home, "Report") == find_type(home, "owner/Report@1") == find_type(home, "Report@1")
    define(home, OTHER)
    with pytest.raises(UsageError, match="`other/Report@1`") as raised:
        find_type(home, "Report")
    assert raised.value.code == "TYPE_AMBIGUOUS"
    assert find_type(home, "other/Report").owner == OTHER.public_key
    assert show_type(home, find_type(home, "other/Report")) == "other/Report@1"
    assert find_type(home, f"{OTHER.public_key.fingerprint}/Report").owner == OTHER.public_key


@pytest.mark.parametrize("text", ["Nothing", "Report@2", "nobody/Report", "owner/Report@9", "reader/Report"])
def test_a_type_that_nobody_defined_is_not_found(home: Home, text: str) -> None:
    """No guess, no nearest one."""
    with pytest.raises(NotFoundError) as raised:
        find_type(home, text)
    assert raised.value.code == "TYPE_NOT_FOUND"


def test_a_client_is_one_whose_private_key_is_here(home: Home) -> None:
    """A name is never enough: `owner` is known here by its public key only."""
    assert Domain(home).client("reader").key == home.key("reader")
    with pytest.raises(NotFoundError):
        Domain(home).client("owner")


def test_a_client_needs_the_passphrase_of_its_key(home: Home) -> None:
    """It comes from a function that asks, and a wrong one proves nothing."""
    home.new_key("locked", passphrase="open sesame")
    domain = Domain(home)
    assert domain.client("locked", passphrase=lambda: "open sesame").name == "locked"
    with pytest.raises(UsageError, match="PASSPHRASE_MISSING"):
        domain.client("locked")
    with pytest.raises(KeyFormatError):
        domain.client("locked", passphrase=lambda: "open barley")


def test_a_key_under_another_name_is_no_proof(home: Home) -> None:
    """Whoever puts an own private key beside somebody's public one is not that client."""
    home.key_path("owner").write_bytes(home.key_path("reader").read_bytes())
    home.key_path("owner").chmod(0o600)
    with pytest.raises(VerificationError, match="KEY_PAIR"):
        Domain(home).client("owner")


def test_a_domain_without_an_engine_says_how_to_get_one(home: Home) -> None:
    """Frames need Spark, which `maia.open` brings."""
    with pytest.raises(MaiaError, match="NO_ENGINE"):
        Domain(home).client("reader").read("Report")
