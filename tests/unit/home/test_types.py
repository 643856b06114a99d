"""The registry of types, which nobody believes."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.authority import Action, Verifier, network_right, type_right
from maia.errors import ChainError, MalformedError, NotFoundError, SignatureError, UnavailableError, VerificationError
from maia.events import (
    FIRST,
    Add,
    AttributeType,
    EventType,
    Registry,
    Remove,
    TypeName,
    Uid,
    UnverifiedEventType,
    Version,
    attribute,
    evolve,
    hashed,
    sign_event_type,
)
from maia.home.types import DirectoryRegistry, fetch_type, verify_with_registry
from maia.principals import Authorisation, KeySigner, Period, UnverifiedCertificate, issue, parse_certificate

PITO, TM, EVIL = (KeySigner(bytes([n]) * 32) for n in (1, 2, 9))
NOW = datetime(2026, 6, 1, tzinfo=UTC)
NETWORK = (PITO.public_key, "UK Police Network")
NP = EventType(
    name=TypeName(PITO.public_key, "uk.gov.pito.Numberplate", FIRST),
    attributes=(attribute("license-plate", 9525, "string"), attribute("location", 3467, "string")),
)
V0 = sign_event_type(NP, PITO)

Open = Callable[..., Registry]


@pytest.fixture
def open_registry(tmp_path: Path) -> Open:
    """Open the registry of this test, again and again the same one."""
    return lambda **how: DirectoryRegistry(tmp_path / "types", **how)


def _plant(registry: Registry, raw: bytes, kind: str, identity: bytes) -> None:
    """Put bytes behind the registry's back, as whoever holds the disk can."""
    assert isinstance(registry, DirectoryRegistry)
    folder = registry._folder / identity.hex()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{hashlib.sha256(raw).hexdigest()}.{kind}").write_bytes(raw)


def _may(*actions: Action, subject: KeySigner = TM) -> UnverifiedCertificate:
    tag = type_right(PITO.public_key, NP.name.name, actions=actions)
    body = Authorisation(issuer=PITO.public_key, subject=subject.public_key, delegate=False, tag=tag.to_sexp())
    return parse_certificate(issue(body, PITO).raw)


def _numbered(definition: EventType, number: str) -> EventType:
    return replace(definition, name=replace(definition.name, version=Version(number)))


def test_what_was_put_is_found_again_after_a_restart(open_registry: Open) -> None:
    """By full name, by type, by identity, and in the list of names; putting twice is putting once."""
    for _ in range(2):
        assert open_registry().put(V0.raw, at=NOW) == V0.definition_id
    registry = open_registry()
    assert registry.find(NP.name) == (V0,)
    assert registry.versions(PITO.public_key, NP.name.name) == (V0,)
    assert registry.get(V0.definition_id) == V0
    assert registry.names() == (NP.name,)


def test_unknown_things_are_not_found(open_registry: Open) -> None:
    """An empty registry says so in its own words."""
    registry = open_registry()
    assert registry.versions(PITO.public_key, NP.name.name) == ()
    assert registry.names() == ()
    with pytest.raises(NotFoundError, match="TYPE_NOT_FOUND"):
        registry.find(NP.name)
    with pytest.raises(NotFoundError, match="TYPE_NOT_FOUND"):
        registry.get(V0.definition_id)
    with pytest.raises(NotFoundError, match="TYPE_NOT_FOUND"):
        fetch_type(registry, NP.name, verifier=Verifier(), at=NOW)


def test_tampered_definition_fails_at_the_client(open_registry: Open) -> None:
    """The registry hands over an altered NP: the client's verification refuses it, and the real one still counts."""
    registry = open_registry()
    tampered = V0.raw.replace(b"8:location", b"8:locatiom")
    _plant(registry, tampered, "type", NP.type_id)
    with pytest.raises(SignatureError):
        fetch_type(registry, NP.name, verifier=Verifier(), at=NOW)
    registry.put(V0.raw, at=NOW)
    assert registry.find(NP.name) == (V0,)
    assert fetch_type(registry, NP.name, verifier=Verifier(), at=NOW).definition == NP


def test_planted_rubbish_is_left_out(open_registry: Open, caplog: pytest.LogCaptureFixture) -> None:
    """What is no definition, or stands under another's name, is never given out."""
    registry = open_registry()
    registry.put(V0.raw, at=NOW)
    _plant(registry, b"rubbish", "type", NP.type_id)
    other = sign_event_type(replace(NP, name=TypeName(EVIL.public_key, "Other", FIRST)), EVIL)
    _plant(registry, other.raw, "type", NP.type_id)
    assert registry.versions(PITO.public_key, NP.name.name) == (V0,)
    assert registry.get(V0.definition_id) == V0
    assert "SEXP" in caplog.text
    assert "rubbish" not in caplog.text


@pytest.mark.threat("T37")
def test_uid_with_a_new_meaning_is_refused(open_registry: Open) -> None:
    """9525 neither changes its type nor comes back as something else after it was removed."""
    registry = open_registry()
    registry.put(V0.raw, at=NOW)
    retyped = replace(_numbered(NP, "1"), attributes=(attribute("plate", 9525, "integer"),))
    with pytest.raises(MalformedError, match="UID_REUSED"):
        registry.put(sign_event_type(retyped, PITO).raw, at=NOW)
    without = sign_event_type(evolve(V0, [Remove("license-plate")], version=Version("2")), PITO)
    registry.put(without.raw, at=NOW)
    back = evolve(without, [Add("colour", AttributeType.STRING, Uid("9525"))], version=Version("3"))
    with pytest.raises((MalformedError, VerificationError), match="UID_REUSED"):
        registry.put(sign_event_type(back, PITO).raw, at=NOW)
    embedded = evolve(without, [Add("colour", AttributeType.STRING, Uid("9525"))], version=Version("3"), embed=True)
    with pytest.raises((MalformedError, VerificationError), match="UID_REUSED"):
        registry.put(sign_event_type(embedded, PITO).raw, at=NOW)
    restored = evolve(without, [Add("license-plate", AttributeType.STRING, Uid("9525"))], version=Version("3"))
    assert registry.put(sign_event_type(restored, PITO).raw, at=NOW)


def test_version_number_is_taken_once(open_registry: Open) -> None:
    """Other attributes need another number; equal attributes by another manager may share a hash."""
    registry = open_registry()
    registry.put(V0.raw, at=NOW)
    with pytest.raises(MalformedError, match="VERSION_TAKEN"):
        registry.put(sign_event_type(replace(NP, attributes=NP.attributes[:1]), PITO).raw, at=NOW)
    first = evolve(V0, [], version=hashed)
    registry.put(sign_event_type(first, PITO).raw, at=NOW)
    again = replace(first, credentials=(_may(Action.MANAGE),))
    registry.put(sign_event_type(again, TM).raw, at=NOW)
    assert len(registry.find(first.name)) == 2


def test_definition_that_does_not_verify_is_not_kept(open_registry: Open) -> None:
    """Strangers cannot fill a name, damaged bytes are refused, and nothing of it stays behind."""
    registry = open_registry()
    with pytest.raises(ChainError):
        registry.put(sign_event_type(NP, EVIL).raw, at=NOW)
    with pytest.raises(SignatureError):
        registry.put(V0.raw[:-10] + bytes(8) + V0.raw[-2:], at=NOW)
    with pytest.raises(MalformedError):
        registry.put(b"rubbish", at=NOW)
    assert registry.names() == ()


def test_registry_of_a_network_demands_install(open_registry: Open) -> None:
    """With a network, what is put must be installable there."""
    registry = open_registry(network=NETWORK)
    assert registry.put(V0.raw, at=NOW)
    own = replace(NP, name=TypeName(TM.public_key, "x.Own", FIRST))
    with pytest.raises(ChainError):
        registry.put(sign_event_type(own, TM).raw, at=NOW)
    tag = network_right(*NETWORK, [Action.INSTALL])
    body = Authorisation(issuer=PITO.public_key, subject=TM.public_key, delegate=False, tag=tag.to_sexp())
    right = parse_certificate(issue(body, PITO).raw)
    assert registry.put(sign_event_type(replace(own, credentials=(right,)), TM).raw, at=NOW)


def test_previous_version_is_looked_up(open_registry: Open) -> None:
    """A partial manager names the previous version by its hash; the registry provides it for comparison."""
    registry = open_registry()
    part = (_may(Action.ADD_ATTRIBUTE),)
    new = sign_event_type(replace(evolve(V0, [Add("speed", AttributeType.INTEGER)]), credentials=part), TM)
    with pytest.raises(VerificationError, match="PREVIOUS_MISSING"):
        registry.put(new.raw, at=NOW)
    registry.put(V0.raw, at=NOW)
    assert registry.put(new.raw, at=NOW)
    assert fetch_type(registry, new.definition.name, verifier=Verifier(), at=NOW).signer == TM.public_key


def _child(parent: EventType, name: str, uid: int) -> UnverifiedEventType:
    made = EventType(
        name=TypeName(PITO.public_key, name, FIRST),
        attributes=(attribute(f"a{uid}", uid, "string"),),
        extends=parent.name,
    )
    return sign_event_type(made, PITO)


def test_types_that_extend_each_other_are_put_together(open_registry: Open) -> None:
    """Parents are looked up and verified, over several generations and not without end."""
    registry = open_registry()
    orphan = _child(NP, "x.Child", 1)
    with pytest.raises(VerificationError, match="PARENT_MISSING"):
        registry.put(orphan.raw, at=NOW)
    registry.put(V0.raw, at=NOW)
    current = NP
    for number in range(16):
        made = _child(current, f"x.Child{number}", number)
        registry.put(made.raw, at=NOW)
        current = made.definition
    found = fetch_type(registry, current.name, verifier=Verifier(), at=NOW)
    assert len(found.event_type.attributes) == 2 + 16
    with pytest.raises(VerificationError, match="LIMIT_EXCEEDED"):
        registry.put(_child(current, "x.TooFar", 99).raw, at=NOW)


def test_client_refuses_another_type_than_it_asked_for(open_registry: Open) -> None:
    """A registry that answers with a different, even genuine, type is not believed."""
    registry = open_registry()
    registry.put(V0.raw, at=NOW)

    class Lying:
        """Gives NP whatever was asked for."""

        def find(self, name: TypeName) -> tuple[UnverifiedEventType, ...]:
            return registry.find(NP.name)

    with pytest.raises(VerificationError, match="REGISTRY_MISMATCH"):
        fetch_type(Lying(), _numbered(NP, "5").name, verifier=Verifier(), at=NOW)  # type: ignore[arg-type]
    assert verify_with_registry(registry, V0, verifier=Verifier(), at=NOW).definition == NP


def test_contradicting_writers_take_turns(open_registry: Open) -> None:
    """Of many versions with one number, put at the same time, exactly one is kept."""
    open_registry().put(V0.raw, at=NOW)
    outcomes: list[str] = []

    def write(number: int) -> None:
        made = replace(_numbered(NP, "7"), attributes=(attribute("a", number, "string"),))
        try:
            open_registry().put(sign_event_type(made, PITO).raw, at=NOW)
            outcomes.append("kept")
        except MalformedError as error:
            outcomes.append(error.code)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(outcomes) == ["VERSION_TAKEN"] * 5 + ["kept"]
    assert len(open_registry().find(_numbered(NP, "7").name)) == 1


def test_expired_version_still_binds_later_ones(open_registry: Open) -> None:
    """A uid keeps its meaning after the version that introduced it has run out."""
    registry = open_registry()
    tag = type_right(PITO.public_key, NP.name.name, actions=[Action.MANAGE])
    body = Authorisation(
        issuer=PITO.public_key, subject=TM.public_key, delegate=False, tag=tag.to_sexp(), period=Period(None, NOW)
    )
    right = parse_certificate(issue(body, PITO).raw)
    registry.put(sign_event_type(replace(NP, credentials=(right,)), TM).raw, at=NOW)
    retyped = replace(_numbered(NP, "1"), attributes=(attribute("plate", 9525, "integer"),))
    with pytest.raises(MalformedError, match="UID_REUSED"):
        registry.put(sign_event_type(retyped, PITO).raw, at=NOW + timedelta(days=1))


def test_full_registry_says_so(open_registry: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a stated number of definitions of one type."""
    monkeypatch.setattr("maia.home.types.MAX_FOUND", 2)
    registry = open_registry()
    for number in range(2):
        registry.put(sign_event_type(_numbered(NP, str(number)), PITO).raw, at=NOW)
    with pytest.raises(MalformedError, match="REGISTRY_FULL"):
        registry.put(sign_event_type(_numbered(NP, "2"), PITO).raw, at=NOW)


def test_broken_store_is_unavailable(tmp_path: Path) -> None:
    """A file where the folder should be is somebody else's failure."""
    blocked = tmp_path / "file"
    blocked.write_bytes(b"no folder")
    with pytest.raises(UnavailableError):
        DirectoryRegistry(blocked / "types").put(V0.raw, at=NOW)
