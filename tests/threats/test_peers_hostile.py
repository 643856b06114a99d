"""A peer that lies in what its invitation carries: names that pass for others, definitions that nobody was shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import perf_counter

import pytest
from peer_world import Peers, home_of

import maia
from maia.domain.peers import admission
from maia.errors import MalformedError, UsageError, VerificationError
from maia.events import AttributeType, TypeName, UnverifiedEventType, evolve, parse_version, sign_event_type
from maia.events.evolution import Add, counted
from maia.home import Home
from maia.policy import peers
from maia.testing import Command


@pytest.fixture
def world(tmp_path: Path) -> Peers:
    """Give the two homes."""
    return Peers(tmp_path)


def content(home: Path) -> dict[str, bytes]:
    """Read all files of a home but its locks."""
    files = (path for path in home.rglob("*") if path.is_file() and not path.name.endswith(".lock"))
    return {str(path.relative_to(home)): path.read_bytes() for path in files}


def weather(world: Peers, name: str = "weather") -> tuple[Command, Path]:
    """Make a third domain that invites St Mary's to read its weather."""
    evil = home_of(world.root / "evil", name, "--log", world.place)
    evil.do("type", "define", "domain/Weather@1", "--attribute", "rain:float:1", "--encryption", "plain")
    made = evil.do("domain", "invite-peer", "--for", "St Mary's", "--give", "reader |- subscribe Weather")
    file = world.root / "evil.maia"
    file.write_text(str(made["invitation"]), "utf-8")
    return evil, file


def carrying(evil: Command, file: Path, types: tuple[bytes, ...]) -> None:
    """Sign the invitation again with other definitions in it."""
    signed = peers.parse_peer_invitation(file.read_bytes())
    assert signed.secret is not None
    made = peers.sign_peer_invitation(
        replace(signed.invitation, types=types), Home.open(evil.home).signer("domain"), signed.secret
    )
    file.write_text(peers.format_peer_invitation(made), "utf-8")


def own_type(evil: Command) -> UnverifiedEventType:
    """Give the definition of the weather."""
    types = Home.open(evil.home).types
    (found,) = types.find(types.names()[0])
    return found


def test_no_type_has_a_name_that_passes_for_the_full_name_of_another(world: Peers) -> None:
    """`owner/name@version` has one reading: a name with its marks is none, for whoever defines or reads one."""
    refused = world.mary.refused("type", "define", "domain/clinic/Result@1@1", "--attribute", "x:string:1")
    assert refused == (1, "NAME_FORM")
    owner = Home.open(world.clinic.home).key("domain")
    for name in ("clinic/Result", "Result@1", "clinic/Result@1"):
        with pytest.raises(MalformedError, match="NAME_FORM"):
            TypeName(owner, name, parse_version("1"))


def test_an_invitation_brings_the_types_of_its_rows_and_no_others(world: Peers) -> None:
    """A second type in the file, which no row speaks of and nobody was shown, is not kept."""
    evil, file = weather(world)
    shown = own_type(evil)
    signer = Home.open(evil.home).signer("domain")
    hidden = sign_event_type(
        replace(shown.definition, name=TypeName(signer.public_key, "Result", parse_version("1"))), signer
    )
    carrying(evil, file, (hidden.raw, shown.raw))
    world.mary.do("domain", "connect", str(file), "--yes")
    assert [name.name for name in Home.open(world.mary.home).types.names()] == ["Weather"]


def test_an_invitation_that_is_refused_has_changed_nothing(world: Peers) -> None:
    """One of its definitions is not its owner's: no key is known, no log taken over, nothing kept, nobody asked."""
    evil, file = weather(world)
    shown, signer = own_type(evil), Home.open(evil.home).signer("domain")
    genuine = evolve(shown, [Add("wind", AttributeType.FLOAT)], version=counted(shown.definition))
    forged = sign_event_type(genuine, Home.open(world.clinic.home).signer("domain"))
    carrying(evil, file, (shown.raw, forged.raw))
    before = content(world.mary.home)
    ran = world.mary("domain", "connect", str(file), "--yes")
    assert ran.code != 0
    assert {name: data for name, data in content(world.mary.home).items() if "audit" not in name} == {
        name: data for name, data in before.items() if "audit" not in name
    }
    carrying(evil, file, (sign_event_type(genuine, signer).raw, shown.raw))
    world.mary.do("domain", "connect", str(file), "--yes")
    assert len(Home.open(world.mary.home).types.names()) == 2


def test_a_peer_is_not_called_by_the_fingerprint_of_another(world: Peers) -> None:
    """Whoever calls itself by the clinic's fingerprint is refused, and rights to that go to the clinic or to nobody."""
    clinic = Home.open(world.clinic.home).key("domain")
    _, file = weather(world, clinic.fingerprint)
    before = content(world.mary.home)
    assert world.mary.refused("domain", "connect", str(file), "--yes") == (2, "KEY_NAME")
    assert content(world.mary.home) == before
    world.connect()
    mary = Home.open(world.mary.home)
    assert mary.folder.key(clinic.fingerprint) == clinic
    other = (world.mary.home / "keys" / "ann.pub").read_bytes()
    (world.mary.home / "keys" / f"{clinic.fingerprint}.pub").write_bytes(other)
    with pytest.raises(UsageError, match="AMBIGUOUS"):
        Home.open(world.mary.home).folder.key(clinic.fingerprint)


def test_what_was_issued_to_a_peer_is_revoked_also_when_its_record_was_lost(
    world: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after issuing and before writing it down: nothing was sent, and the connection can be ended."""
    answer = world.answer(world.invite(), "--reader", "ann")

    def killed(*_args: object, **_more: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(admission, "keep_sent", killed)
        world.clinic("domain", "connect", str(answer), "--yes")
    domain = maia.open(world.mary.home)
    domain.follow()
    clinic = Home.open(world.clinic.home).key("domain").key_id
    assert [item for item in domain.home.pool() if item.body.issuer_id == clinic] == []
    assert world.clinic.do("domain", "disconnect", "St Mary's", "--yes")["certificates"] == 2


def test_a_definition_that_nobody_here_may_use_is_not_kept(world: Peers) -> None:
    """Bob signs a type of his own and brings it; the broker has no right on it, and keeps nothing."""
    evil, _ = weather(world)
    home = Home.open(world.mary.home)
    bob = home.signer("bob")
    name = TypeName(bob.public_key, "Own", parse_version("1"))
    raw = sign_event_type(replace(own_type(evil).definition, name=name), bob).raw
    with pytest.raises(VerificationError):
        maia.open(world.mary.home).client("bob").advertise(raw)
    assert home.types.names() == ()


def test_many_versions_cost_what_they_are(tmp_path: Path) -> None:
    """24 versions, each from the one before: each is kept well below a second, and a look at all of them too."""
    command = home_of(tmp_path / "home", "weather")
    command.do("type", "define", "domain/W@1", "--attribute", "rain:float:1", "--encryption", "plain")
    home = Home.open(command.home)
    signer, at = home.signer("domain"), maia.open(command.home).clock()
    (current,) = home.types.find(home.types.names()[0])
    longest = 0.0
    for number in range(2, 25):
        wanted = evolve(current, [Add(f"a{number}", AttributeType.STRING)], version=counted(current.definition))
        current = sign_event_type(wanted, signer)
        begun = perf_counter()
        home.folder.types.put(current.raw, at=at)
        longest = max(longest, perf_counter() - begun)
    domain, begun = maia.open(command.home), perf_counter()
    assert len(domain.known(at=domain.clock()).types) == 24
    assert max(longest, perf_counter() - begun) < 2
