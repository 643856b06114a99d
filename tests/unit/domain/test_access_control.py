"""The service over a home on disk: its own lists, its key groups, its agreements, its providers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from maia.access_control import MemberKind
from maia.authority import Action, ask_type, type_right
from maia.domain import (
    HomeAgreements,
    in_register,
    join_key_groups,
    open_access_control,
    open_home_groups,
    open_key_manager,
    prove_key,
)
from maia.errors import MaiaError, NotFoundError
from maia.events import EventType, TypeName, attribute, parse_version, sign_event_type
from maia.home import Folder, Home, HomeConfig
from maia.principals import KeySigner, parse_certificate, verify_certificate
from maia.testing import at, follow, grant

NOW = at("2026-06-01T09:00:00")


@pytest.fixture
def home(tmp_path):
    """A domain that owns a type and manages its keys."""
    made = Home.create(tmp_path / "met", HomeConfig(name="met"))
    owner = made.new_key("domain")
    kind = EventType(
        name=TypeName(owner.public_key, "Sighting", parse_version("1")), attributes=(attribute("plate", 1, "string"),)
    )
    made.types.put(sign_event_type(kind, owner).raw, at=NOW)
    return made


def join(service, home, name, signer, **invitation):
    """Let somebody become a member, and keep what is handed over in the home."""
    code = service.invite(name, at=NOW, **invitation)
    who = prove_key(service, signer, nonce=b"n" * 16, at=NOW)
    handed = service.enrol(who, invitation=code, at=NOW).handed
    for raw in handed.evidence:
        home.certificates.add(verify_certificate(parse_certificate(raw)))
    return who


def test_a_broker_that_is_put_out_leaves_the_key_groups_and_their_keys_change(home):
    """Its blanket admitted it; when the member goes, the group is refreshed without it, in the same call."""
    service = open_access_control(home)
    join(service, home, "broker-1", home.broker, kind=MemberKind.BROKER)
    manager, _ = open_key_manager(home)
    manager.start(at=NOW)
    (name,) = home.types.names()
    open_home_groups(home, manager, name, at=NOW)
    assert join_key_groups(home, name, lambda request, evidence: manager.join(request, evidence, at=NOW),
                           manager=manager.public_key, at=NOW)  # fmt: skip
    assert {group.members for group in manager.status()} == {1}
    later = NOW + timedelta(minutes=1)
    done = service.revoke(principal="broker-1", at=later)
    assert done.told
    assert {group.members for group in manager.status()} == {0}


def test_the_homes_own_verifier_hears_of_a_withdrawal_at_once(home):
    """The list lies in the home and in its log when the call returns."""
    service = open_access_control(home)
    service.apply("seer(self) <- hired(self)*\nseer(x) |- subscribe Sighting", at=NOW)
    smith = KeySigner(b"s" * 32)
    who = join(service, home, "smith", smith, appointments=["hired(smith)"])
    service.activate(who, "seer(smith)", at=NOW)
    handed = service.capabilities(who, at=NOW)
    request = ask_type(Action.SUBSCRIBE, service.key, "Sighting", "1")

    def decide():
        return home.verifier().decide(request, principal=smith.public_key, evidence=handed.evidence, at=NOW)

    assert decide()
    service.retract("hired(smith)", at=NOW)
    assert decide().reason == "REVOKED"


def test_a_right_is_pushed_with_the_chain_that_leads_to_it(home, tmp_path):
    """The region's certificate alone would be a stranger's; with the owner's in front of it the broker keeps both."""
    owner, region = KeySigner(b"o" * 32), KeySigner(b"r" * 32)
    right = type_right(owner.public_key)
    first = grant(owner, region, right, delegate=True)
    last = grant(region, home.signer("domain"), right, delegate=True)
    home.certificates.add(first)
    other = Home.create(tmp_path / "broker", HomeConfig(name="broker", log=str(home.log_path)))
    other.add_public_key("domain", home.key("domain"))
    other.add_public_key("owner", owner.public_key)
    open_access_control(home).gain(last.raw, at=NOW)
    follow(other, at=NOW)
    assert {first.certificate_id, last.certificate_id} <= {item.certificate_id for item in other.pool()}


def test_providers_of_the_home_are_asked(home):
    """A file says who is on duty; when the line goes, the role goes at the next look."""
    folder = home.path / "policy"
    folder.mkdir()
    (folder / "duty.csv").write_text("jones\nsmith\n")
    (folder / "providers.toml").write_text(
        '[[predicate]]\nname = "on-duty"\narity = 1\nkind = "file"\npath = "duty.csv"\n'
    )
    service = open_access_control(home)
    service.apply("seer(self) <- ?on-duty(self)*", at=NOW)
    who = join(service, home, "smith", KeySigner(b"s" * 32))
    service.refresh(at=NOW)
    service.activate(who, "seer(smith)", at=NOW)
    (folder / "duty.csv").write_text("jones\n")
    assert service.refresh(at=NOW + timedelta(seconds=10)).roles == ("smith: seer(smith)",)


def test_a_database_that_a_service_was_told_is_asked_about_what_it_issued(home, tmp_path):
    """Else what the service issued would be revoked by hand, without its record."""
    told = replace(home, config=replace(home.config, database=str(tmp_path / "elsewhere.db")))
    service = open_access_control(told)
    who = prove_key(service, KeySigner(bytes([5]) * 32), nonce=b"n" * 16, at=NOW)
    handed = service.enrol(who, invitation=service.invite("smith", at=NOW), at=NOW).handed
    (issued, *_) = [parse_certificate(raw) for raw in handed.evidence]
    home.certificates.add(verify_certificate(issued))
    text = issued.certificate_id.hex()[:16]
    assert (in_register(told.folder, text), in_register(home.folder, text)) == (True, False)
    assert Home.of(told.folder).config == told.config
    assert Home.of(Folder(home.path)).config == home.config


def test_a_home_without_the_domains_key_has_no_service(tmp_path):
    """Nobody speaks for the domain there."""
    home = Home.create(tmp_path / "x", HomeConfig(name="x"))
    with pytest.raises(NotFoundError) as refusal:
        open_access_control(home)
    assert refusal.value.code == "NO_DOMAIN_KEY"


def test_settings_of_the_home_count_and_broken_ones_stop_it(home):
    """A short life in the file is the life of what is issued; a slip in it is an error, not a default."""
    folder = home.path / "policy"
    folder.mkdir()
    (folder / "domain.toml").write_text("life = 60\n")
    service = open_access_control(home)
    who = join(service, home, "smith", KeySigner(b"s" * 32))
    (mine,) = service.capabilities(who, at=NOW).certificates
    assert mine.body.period.not_after == NOW + timedelta(seconds=60)
    (folder / "domain.toml").write_text("lief = 60\n")
    with pytest.raises(MaiaError) as refusal:
        open_access_control(home)
    assert refusal.value.code == "DOMAIN_SETTINGS"


@pytest.mark.parametrize("blanket", [True, False])
def test_brokers_get_the_blanket_unless_the_settings_say_otherwise(home, blanket):
    """Without it a broker has its names, and whatever roles give it."""
    folder = home.path / "policy"
    folder.mkdir()
    (folder / "domain.toml").write_text(f"blanket = {str(blanket).lower()}\n")
    service = open_access_control(home)
    code = service.invite("van", kind=MemberKind.BROKER, at=NOW)
    who = prove_key(service, KeySigner(b"v" * 32), nonce=b"n" * 32, at=NOW)
    handed = service.enrol(who, invitation=code, at=NOW).handed
    assert [item.body.name for item in handed.certificates] == ["van", "brokers"]
    assert (len(handed.chain) == 1) is blanket
    (folder / "domain.toml").write_text("blanket = 1\n")
    with pytest.raises(MaiaError) as refusal:
        open_access_control(home)
    assert refusal.value.code == "DOMAIN_SETTINGS"


def test_a_file_that_is_no_agreement_gives_nothing(home):
    """It is left alone, and no role is named for it."""
    folder = home.path / "policy"
    folder.mkdir()
    (folder / "x.agreement").write_text("(agreement)")
    assert HomeAgreements(home, home.key("domain").key_id).named_roles(at=NOW) == frozenset()
