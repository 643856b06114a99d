"""`maia keys join` and `maia keys leave`: whom a home asks for keys, and what it says when nobody answers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from echo_service import free_port
from maia.authority import Action, type_right
from maia.domain import OwnKeyManager, ensure_keys
from maia.errors import UnavailableError
from maia.events import EventType, Options, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.kernel import BROKERS, CLIENTS
from maia.principals import KeySigner
from maia.testing import grant, naming, publish_plan

NOW = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=5)
TYPE = "clinic.Result"
OWNER = KeySigner.generate()
RESULT = EventType(
    name=TypeName(OWNER.public_key, TYPE, parse_version("1")),
    attributes=(attribute("patient", "11", "string"), attribute("value", "12", "integer")),
    options=Options(),
)


def build(maia: Any, *, domain: KeySigner, named: bool = True, address: str | None = None) -> Home:
    """Make a home whose broker may publish and read the type."""
    made = Home.create(maia.home, HomeConfig(name="clinic", key_manager=address))
    made.add_key("domain", domain)
    both = type_right(OWNER.public_key, TYPE, actions=[Action.PUBLISH, Action.SUBSCRIBE])
    made.certificates.add(grant(OWNER, made.broker, both))
    if named:
        made.certificates.add(naming(domain, BROKERS, made.broker))
    made.types.put(sign_event_type(RESULT, OWNER).raw, at=NOW)
    return made


def test_home_without_an_address_joins_its_own_manager(maia: Any) -> None:
    """The owner's broker gets all keys at once; a second time is harmless."""
    home = build(maia, domain=OWNER)
    data = maia("keys", "join", TYPE, "--json").data
    assert (data["type"], data["manager"], data["address"]) == (TYPE, OWNER.public_key.fingerprint, None)
    assert [(row["group"], row["uid"]) for row in data["groups"]] == [
        (f"{TYPE}/*", None), (f"{TYPE}/patient", "11"), (f"{TYPE}/value", "12"),
    ]  # fmt: skip
    assert all(datetime.fromisoformat(row["start"]) <= datetime.now(UTC) for row in data["groups"])
    assert ensure_keys(home, OwnKeyManager(home), RESULT, at=datetime.now(UTC)) == 0
    ran = maia("keys", "join", TYPE)
    assert ran.code == 0
    assert ran.out.startswith(f"{TYPE}/*: key since ")
    assert len(ran.out.splitlines()) == 3
    assert maia("keys", "status", "--json").data["places"] == 3


def test_home_that_is_no_manager_and_names_none_is_told_what_to_write(maia: Any) -> None:
    """Its own domain key owns nothing here; nothing is made on the way."""
    build(maia, domain=KeySigner.generate())
    ran = maia("keys", "join", TYPE, "--json")
    assert (ran.code, ran.data["error"]) == (5, "NO_KEY_MANAGER")
    assert "`key_manager` under `[services]`" in ran.err
    assert not (maia.home / "store.db").exists()


def test_own_manager_refuses_a_broker_that_nobody_names(maia: Any) -> None:
    """In process the very code is told."""
    build(maia, domain=OWNER, named=False)
    ran = maia("keys", "join", TYPE, "--json")
    assert (ran.code, ran.data["error"]) == (4, "NOT_A_BROKER")


@pytest.mark.parametrize("verb", ["join", "leave"])
def test_unknown_type_is_not_found(maia: Any, verb: str) -> None:
    """Before anybody is asked."""
    build(maia, domain=OWNER)
    ran = maia("keys", verb, "clinic.Nothing", "--json")
    assert (ran.code, ran.data["error"]) == (5, "TYPE_NOT_FOUND")


@pytest.mark.parametrize("verb", ["join", "leave"])
def test_manager_whose_key_is_unknown_is_not_asked(maia: Any, verb: str) -> None:
    """An address alone proves nobody."""
    build(maia, domain=KeySigner.generate(), address=f"http://127.0.0.1:{free_port()}")
    ran = maia("keys", verb, TYPE, "--json")
    assert (ran.code, ran.data["error"]) == (5, "NO_MANAGER_KEY")
    assert "maia key import key-manager" in ran.err


@pytest.mark.parametrize("verb", ["join", "leave"])
def test_manager_that_is_away_ends_with_1_and_what_to_do(maia: Any, verb: str) -> None:
    """Nobody listens: the address is named, and the way out."""
    port = free_port()
    home = build(maia, domain=KeySigner.generate(), address=f"http://127.0.0.1:{port}")
    home.add_public_key("key-manager", OWNER.public_key)
    ran = maia("keys", verb, TYPE, "--json")
    assert (ran.code, ran.data["error"]) == (1, "PEER_UNAVAILABLE")
    assert f"127.0.0.1:{port}" in ran.err
    assert "maia serve key-manager" in ran.err


def test_home_that_manages_its_keys_leaves_nobody(maia: Any) -> None:
    """It would go on sealing with keys that it follows no longer."""
    build(maia, domain=OWNER)
    assert maia("keys", "join", TYPE).code == 0
    ran = maia("keys", "leave", TYPE, "--json")
    assert (ran.code, ran.data["error"]) == (2, "KEY_MANAGER_HERE")
    assert maia("keys", "status", "--json").data["places"] == 3


def test_publishing_before_joining_says_how_to_join(maia: Any) -> None:
    """No key is made here, and no plan either; a type without sealing needs no key."""
    domain = KeySigner.generate()
    home = build(maia, domain=domain, address="https://keys.example")
    home.add_key("lab", OWNER)
    home.certificates.add(naming(domain, CLIENTS, OWNER))
    with pytest.raises(UnavailableError, match=rf"`maia keys join {TYPE}`") as refusal:
        publish_plan(home, TYPE, as_="lab", version=None, publication="one", at=datetime.now(UTC))
    assert refusal.value.code == "KEYS_NOT_JOINED"
    assert home.keyring().groups() == ()
    plain = replace(RESULT, options=Options(encryption=RESULT.options.encryption.PLAIN))
    assert ensure_keys(home, OwnKeyManager(home), plain, at=datetime.now(UTC)) == 0


def test_one_name_of_two_owners_is_ambiguous(maia: Any) -> None:
    """Each owner's type has groups of its own."""
    home, other = build(maia, domain=OWNER), KeySigner.generate()
    theirs = replace(RESULT, name=TypeName(other.public_key, TYPE, parse_version("1")))
    home.types.put(sign_event_type(theirs, other).raw, at=NOW)
    ran = maia("keys", "join", TYPE, "--json")
    assert (ran.code, ran.data["error"]) == (2, "TYPE_AMBIGUOUS")
