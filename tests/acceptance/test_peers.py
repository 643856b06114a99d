"""A second organisation with one file: what it brings, and every file that is refused; two homes and a shared log."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from peer_world import DEFINE, GIVE, Peers, home_of

import maia
from maia.errors import DeniedError, NotFoundError
from maia.policy import Agreement, SignedAgreement, peers, sign_agreement
from maia.principals import KeySigner
from maia.testing import Command, publish_here, served

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "share-with-a-partner.md"


@pytest.fixture
def world(tmp_path: Path) -> Peers:
    """Give the two homes."""
    return Peers(tmp_path)


def content(home: Path) -> dict[str, bytes]:
    """Read all files of a home but its locks."""
    files = (path for path in home.rglob("*") if path.is_file() and not path.name.endswith(".lock"))
    return {str(path.relative_to(home)): path.read_bytes() for path in files}


def domain_key(command: Command) -> KeySigner:
    """Open the key that speaks for a domain."""
    return maia.open(command.home).home.signer("domain")


# ---------------------------------------------------------------- the way there


def test_one_file_there_and_one_back_connect_two_organisations(world: Peers) -> None:
    """B13: keys, types, log, lists and rights on both sides, and keys of what was agreed and of nothing else."""
    answer = world.answer(world.invite(), "--reader", "ann")
    waiting = maia.open(world.mary.home).status().steps
    assert [(step.command, step.where) for step in waiting[:1]] == [
        ("maia domain connect answer.maia", "the home of `clinic`")
    ]
    done = world.admit(answer)
    assert (done["did"], done["known_as"], done["certificates"], done["groups"]) == ("admitted", "st-marys", 2, 2)
    mary = maia.open(world.mary.home)
    mary.follow()
    assert (mary.home.log_path, mary.find_type("clinic/Result").name) == (world.log, "Result")
    assert {world.members(name) for name in ("ward", "value")} == {2}
    assert {world.members(name) for name in ("patient", "*")} == {1}
    assert {group.label for group in mary.home.keyring().groups()} == {b"2", b"3"}
    assert list((world.mary.home / "peers").glob("*.joining")) == []
    allowed = ("verify", "--as", "ann", "--type", "clinic/Result@1", "--action", "subscribe")
    assert world.mary(*allowed, "--attribute", "ward").code == 0
    assert world.mary(*allowed, "--attribute", "patient").code == 4
    assert world.mary(*(word.replace("ann", "bob") for word in allowed), "--attribute", "ward").code == 4


def test_the_page_needs_at_most_twelve_commands() -> None:
    """From two empty folders to a row on the other side; the documentation's tests run them."""
    walk, _, _ = PAGE.read_text("utf-8").partition("## Afterwards")
    blocks = re.findall(r"^```console\n(.*?)^```", walk, re.MULTILINE | re.DOTALL)
    shown = [line for block in blocks for line in block.splitlines()]
    typed = [line for line in shown if line.startswith("$ ")]
    assert 0 < len(typed) <= 12
    assert any(line.startswith("$ maia domain invite-peer") for line in typed)
    assert typed[-1].startswith("$ maia subscribe")
    assert shown[-1].startswith("│")


def test_a_network_comes_along_and_the_right_to_connect_with_it(tmp_path: Path) -> None:
    """The other domain becomes one of the network: only then its broker may hold keys."""
    world = Peers.__new__(Peers)
    world.root, world.log = tmp_path, tmp_path / "shared"
    world.clinic = home_of(tmp_path / "clinic", "clinic", "--log", str(world.log), "--network", "domain/Wards")
    world.clinic.do("type", "define", "domain/Result@1", *DEFINE)
    world.mary = home_of(tmp_path / "mary", "St Mary's")
    world.mary.keys("ann")
    assert world.connect()["groups"] == 2
    mary = maia.open(world.mary.home)
    mary.follow()
    assert mary.config.network == ("clinic", "Wards")
    asked = ("verify", "--as", "ann", "--network", "clinic/Wards", "--action", "connect")
    assert world.mary(*asked).code == 0


@pytest.mark.slow
def test_a_key_manager_that_serves_is_named_and_asked(world: Peers) -> None:
    """Where the clinic's key manager is a service, the invitation says where, and `maia keys join` asks it."""
    settings = world.clinic.home / "maia.toml"
    before = settings.read_text("utf-8")
    shutil.copy(world.clinic.home / "keys" / "domain.pub", world.clinic.home / "keys" / "key-manager.pub")
    world.invite()  # names the clinic's own broker, and opens nothing
    with served("key-manager", world.clinic.home) as port:
        settings.write_text(f'{before}\n[services]\nkey_manager = "http://127.0.0.1:{port}"\n', "utf-8")
        world.clinic.do("keys", "join", "Result")
        done = world.connect()
        assert (done["groups"], done["join_at"]) == (0, f"http://127.0.0.1:{port}")
        mary = maia.open(world.mary.home)
        mary.follow()
        assert mary.config.key_manager == f"http://127.0.0.1:{port}"
        assert list((world.mary.home / "peers").glob("*.joining")) == []
        joined = world.mary.do("keys", "join", "clinic/Result")
        assert {group["uid"] for group in joined["groups"]} == {"2", "3"}


@pytest.mark.parametrize("more, epochs", [((), 1), (("--history", "all"), 2), (("--history", "2099-01-01"), 1)])
def test_keys_of_earlier_come_only_where_the_owner_says_so(world: Peers, more: tuple[str, ...], epochs: int) -> None:
    """The key of what was sealed before is handed over on the owner's word, and of offered columns only."""
    world.clinic.grant("--from", "domain", "--to", "broker", "--type", "domain/Result", "--action", "publish")
    row = {"patient": "Ada", "ward": "A", "value": 5.4}
    publish_here(maia.open(world.clinic.home).home, "Result", [row], as_="lab", at=datetime.now(UTC))
    world.connect(*more)
    mary = maia.open(world.mary.home)
    mary.follow()
    ring = mary.home.keyring()
    assert {group.label: len(ring.epochs(group)) for group in ring.groups()} == {b"2": epochs, b"3": epochs}


def test_python_goes_the_same_way(world: Peers) -> None:
    """`Domain.invite_peer` and `Domain.connect` make and take the same files, and the open domain goes on."""
    clinic, mary = maia.open(world.clinic.home), maia.open(world.mary.home)
    file = clinic.invite_peer("St Mary's", give=GIVE).save(world.root / "peer.maia")
    assert file.stat().st_mode & 0o077 == 0
    answered = mary.connect(file, readers="ann")
    assert (answered.did, answered.known_as, mary.home.log_path) == ("answered", "clinic", world.log)
    (world.root / "answer.maia").write_text(answered.text or "", "utf-8")
    admitted = clinic.connect(world.root / "answer.maia")
    assert (admitted.did, admitted.groups) == ("admitted", 2)
    assert mary.find_type("clinic/Result").name == "Result"
    with pytest.raises(NotFoundError) as refused:
        mary.connect(world.root / "nothing.maia")
    assert refused.value.code == "NO_SUCH_FILE"
    with pytest.raises(DeniedError) as lacking:
        mary.invite_peer("clinic", give="reader |- subscribe Result(ward)")
    assert lacking.value.code == "ISSUER_LACKS_RIGHT"


def test_an_agreement_signed_by_hand_gives_the_other_broker_keys(world: Peers) -> None:
    """B13: the receiver asks in the log as it signs, and the giver answers there."""
    shutil.copy(world.clinic.home / "keys" / "domain.pub", world.mary.home / "keys" / "clinic.pub")
    shutil.copy(world.mary.home / "keys" / "domain.pub", world.clinic.home / "keys" / "mary.pub")
    shutil.copytree(world.clinic.home / "types", world.mary.home / "types")
    settings = world.mary.home / "maia.toml"
    settings.write_text(settings.read_text("utf-8").replace('log = "log"', f'log = "{world.log}"'), "utf-8")
    world.clinic.do("name", "add", "brokers", "--from", "domain", "--to", "broker")
    world.clinic.grant("--from", "domain", "--to", "broker", "--type", "*", "--blanket")
    file = str(world.root / "research.agreement")
    world.clinic.do("domain", "agree", file, "--with", "mary", "--give", GIVE)
    world.mary.do("domain", "agree", file, "--yes")
    done = world.clinic.do("domain", "agree", file)
    assert done["did"] == "issued 2 certificates and gave 2 places in key groups"
    assert {world.members(name) for name in ("ward", "value")} == {2}
    mary = maia.open(world.mary.home)
    mary.follow()
    assert {group.label for group in mary.home.keyring().groups()} == {b"2", b"3"}


# ---------------------------------------------------------------- what is in the file, and what is kept of it


def test_who_invites_keeps_no_secret_and_the_file_says_what_is_one(world: Peers) -> None:
    """The one-time secret is named in the file, and lies nowhere in the home that made it."""
    data = world.invite().read_bytes()
    assert b"one-time-secret" in data
    secret = peers.parse_peer_invitation(data).secret
    assert secret is not None
    seed = secret.export_seed()
    assert all(seed not in found and seed.hex().encode() not in found for found in content(world.clinic.home).values())
    private = [domain_key(world.clinic).export_seed(), maia.open(world.clinic.home).home.broker.export_seed()]
    assert all(key not in data and key.hex().encode() not in data for key in private)


def test_comments_of_the_settings_stay(world: Peers) -> None:
    """Connecting changes the lines that it must, and nothing else that a person wrote."""
    settings = world.mary.home / "maia.toml"
    settings.write_text(f"# ours\n{settings.read_text('utf-8')}# the end\n", "utf-8")
    world.answer(world.invite())
    written = settings.read_text("utf-8")
    assert "# ours" in written
    assert "# the end" in written
    assert maia.open(world.mary.home).home.log_path == world.log


# ---------------------------------------------------------------- files that are refused


def changed(old: str, new: str) -> Callable[[str], str]:
    """Exchange a text that stands in the file."""

    def change(text: str) -> str:
        assert old in text, f"{old} is not in the file"
        return text.replace(old, new, 1)

    return change


def flipped(text: str) -> str:
    """Exchange the one-time secret for another one."""
    found = re.search(r"\(one-time-secret [|#]([^|#]+)", text)
    assert found is not None
    other = ("B" if found[1][0] != "B" else "C") if "|" in found[0] else ("1" if found[1][0] != "1" else "2")
    return text[: found.start(1)] + other + text[found.start(1) + 1 :]


ALTERED = {
    "another row": (changed("subscribe Result(ward, value)", "subscribe Result(ward, other)"), "PEER_FILE_ALTERED"),
    "another log": (changed("shared", "elsewhere"), "PEER_FILE_ALTERED"),
    "another name": (changed("St Mary's", "St Peter's"), "PEER_FILE_ALTERED"),
    "another secret": (flipped, "PEER_FILE_ALTERED"),
    "an unknown field": (changed("(history)", "(history) (more)"), "PEER_FILE_SHAPE"),
    "a field that is missing": (changed("(history)", ""), "PEER_FILE_SHAPE"),
    "another version": (changed('(version "1")', '(version "2")'), "PEER_FILE_SHAPE"),
    "something behind it": (lambda text: f"{text}()", "PEER_FILE_SHAPE"),
    "no secret": (lambda text: re.sub(r" \(one-time-secret [^)]*\)", "", text), "PEER_FILE_SHAPE"),
    "half of it": (lambda text: text[: len(text) // 2], "PEER_FILE_SHAPE"),
    "nothing": (lambda _: "", "PEER_FILE_SHAPE"),
    "too much": (lambda text: text + " " * (1 << 20), "PEER_FILE_SIZE"),
}


@pytest.mark.parametrize("change, code", ALTERED.values(), ids=ALTERED)
def test_an_altered_invitation_is_refused_and_changes_nothing(
    world: Peers, change: Callable[[str], str], code: str
) -> None:
    """Whatever was done to it on its way: one code, and the home is as it was."""
    file = world.invite()
    file.write_text(change(file.read_text("utf-8")), "utf-8")
    before = content(world.mary.home)
    assert world.mary.refused("domain", "connect", str(file), "--yes")[1] == code
    assert content(world.mary.home) == before


def test_an_altered_answer_is_refused(world: Peers) -> None:
    """Neither the agreement nor the name nor the proof of the secret can be exchanged on the way back."""
    file = world.answer(world.invite())
    text = file.read_text("utf-8")
    for old, new in (("St Mary's", "St Peter's"), ("subscribe Result(ward, value)", "subscribe Result(ward)")):
        file.write_text(changed(old, new)(text), "utf-8")
        assert world.clinic.refused("domain", "connect", str(file), "--yes") == (4, "PEER_FILE_ALTERED")
    assert world.clinic.do("keys", "groups")["groups"] == []


def test_who_was_not_given_the_file_cannot_answer_it(world: Peers) -> None:
    """All of an invitation but its secret is public: an answer that another secret signs is none."""
    signed = peers.parse_peer_invitation(world.invite().read_bytes())
    stranger, invitation = domain_key(world.mary), signed.invitation
    text = forged_answer(invitation, stranger, KeySigner.generate(), invitation.rows)
    (world.root / "answer.maia").write_text(text, "utf-8")
    assert world.clinic.refused("domain", "connect", str(world.root / "answer.maia"), "--yes")[1] == "PEER_FILE_ALTERED"


def forged_answer(
    invitation: peers.PeerInvitation, domain: KeySigner, secret: KeySigner, rows: tuple[object, ...]
) -> str:
    """Write an answer as somebody would who keeps to no rule."""
    agreement = Agreement(title=invitation.title, giver=invitation.key, receiver=domain.public_key, rows=rows)  # type: ignore[arg-type]
    half = sign_agreement(SignedAgreement(agreement=agreement), domain)
    answer = peers.PeerAnswer(
        invitation=invitation.digest, name="St Mary's", agreement=agreement, signature=half.signatures[0],
        offer=peers.JoinOffer(),
    )  # fmt: skip
    return peers.sign_peer_answer(answer, domain, secret)


def test_an_answer_to_more_than_was_offered_is_refused(world: Peers) -> None:
    """The agreement that comes back is the one that went out, to the letter."""
    wider = peers.parse_peer_invitation(world.invite(give="researcher |- subscribe Result").read_bytes())
    signed = peers.parse_peer_invitation(world.invite().read_bytes())
    assert signed.secret is not None
    text = forged_answer(signed.invitation, domain_key(world.mary), signed.secret, wider.invitation.rows)
    (world.root / "answer.maia").write_text(text, "utf-8")
    assert world.clinic.refused("domain", "connect", str(world.root / "answer.maia"), "--yes") == (4, "PEER_OFFER")


def test_an_answer_asks_for_keys_of_what_the_agreement_speaks_of(world: Peers) -> None:
    """A request for another type of the same owner, slipped into an answer that was agreed, brings no key."""
    world.clinic.do("type", "define", "domain/Salary@1", *DEFINE)
    other = world.answer(world.invite(give="researcher |- subscribe Salary(ward, value)")).read_bytes()
    invitation = world.invite()
    secret = peers.parse_peer_invitation(invitation.read_bytes()).secret
    assert secret is not None
    honest = peers.parse_peer_answer(world.answer(invitation).read_bytes()).answer
    forged = replace(honest, offer=peers.parse_peer_answer(other).answer.offer)
    (world.root / "answer.maia").write_text(peers.sign_peer_answer(forged, domain_key(world.mary), secret), "utf-8")
    assert world.clinic.refused("domain", "connect", str(world.root / "answer.maia"), "--yes") == (4, "PEER_OFFER")
    assert world.clinic.do("keys", "groups")["groups"] == []


def test_an_invitation_ends(world: Peers) -> None:
    """It is refused when its time is over, by who would answer and by who made it; who was admitted in time stays."""
    file = world.invite("--until", "+1h")
    assert world.mary.refused("domain", "connect", str(file), "--yes", "--at", "+2h") == (4, "PEER_INVITATION_OVER")
    answer = world.answer(file)
    late = ("domain", "connect", str(answer), "--yes", "--at", "+2h")
    assert world.clinic.refused(*late) == (4, "PEER_INVITATION_OVER")
    assert world.admit(answer)["groups"] == 2
    assert world.admit(world.answer(file, "--at", "+2h"), "--at", "+2h")["groups"] == 2
    assert world.clinic.refused("domain", "invite-peer", "--for", "X", "--give", GIVE, "--until", "+400d")[1] == (
        "PEER_INVITATION_PERIOD"
    )


def test_an_invitation_works_for_one_domain(world: Peers) -> None:
    """Whoever answers second, with the very same file, is refused; the first may answer again and loses nothing."""
    file = world.invite()
    eve = home_of(world.root / "eve", "Eve")
    first = world.answer(file).read_text("utf-8")
    second = world.answer(file, by=eve)
    (world.root / "first.maia").write_text(first, "utf-8")
    assert world.admit(world.root / "first.maia")["groups"] == 2
    assert world.clinic.refused("domain", "connect", str(second), "--yes") == (3, "PEER_INVITATION_USED")
    assert world.members("ward") == 2
    assert world.admit(world.root / "first.maia")["groups"] == 2
    assert world.admit(world.answer(file))["groups"] == 2
    assert world.members("ward") == 2


def test_an_invitation_for_one_key_is_for_nobody_else(world: Peers) -> None:
    """With `--key` the other domain is known: its home refuses what is not for it, and so does who invited."""
    key = domain_key(world.mary).public_key.raw.hex()
    file = world.invite("--key", key)
    eve = home_of(world.root / "eve", "Eve")
    assert eve.refused("domain", "connect", str(file), "--yes") == (3, "PEER_WRONG")
    signed = peers.parse_peer_invitation(file.read_bytes())
    assert signed.secret is not None
    text = forged_answer(signed.invitation, domain_key(eve), signed.secret, signed.invitation.rows)
    (world.root / "answer.maia").write_text(text, "utf-8")
    assert world.clinic.refused("domain", "connect", str(world.root / "answer.maia"), "--yes") == (3, "PEER_WRONG")
    assert world.admit(world.answer(file))["groups"] == 2


def test_files_in_the_wrong_hands_are_named(world: Peers) -> None:
    """The own invitation, somebody else's answer, a log that is not there, and one that has events of its own."""
    file = world.invite()
    assert world.clinic.refused("domain", "connect", str(file), "--yes") == (2, "PEER_SELF")
    answer = world.answer(file)
    eve = home_of(world.root / "eve", "Eve")
    assert eve.refused("domain", "connect", str(answer), "--yes")[1] == "PEER_INVITATION_UNKNOWN"
    assert eve.refused("domain", "connect", str(file), "--yes", "--log", str(world.root / "no"))[1] == "PEER_LOG"
    assert eve.refused("domain", "connect", str(world.root / "no.maia"), "--yes")[1] == "NO_SUCH_FILE"
    moved = world.root / "moved"
    shutil.copytree(world.log, moved)
    assert eve.do("domain", "connect", str(file), "--yes", "--log", str(moved))["did"] == "answered"
    assert maia.open(eve.home).home.log_path == moved


def test_a_home_with_events_of_its_own_keeps_its_log(world: Peers) -> None:
    """A home has one log; one that others may have read is not exchanged for another."""
    mary = world.mary
    mary.do("type", "define", "domain/Ours@1", "--attribute", "word:string:1")
    for name in ("broker", "ann"):
        mary.grant("--from", "domain", "--to", name, "--type", "domain/Ours", "--action", "publish")
    publish_here(maia.open(mary.home).home, "Ours", [{"word": "x"}], as_="ann", at=datetime.now(UTC))
    assert mary.refused("domain", "connect", str(world.invite()), "--yes") == (2, "PEER_LOG_IN_USE")
    assert maia.open(mary.home).home.log_path == mary.home / "log"


def test_nobody_signs_without_a_word(world: Peers) -> None:
    """Both sides are shown what they sign, and whose key it is, and are asked."""
    file = world.invite()
    asked = world.mary("domain", "connect", str(file), stdin="n\n")
    assert (asked.code, asked.out) == (2, "")
    assert "researcher |- subscribe Result(ward, value)" in asked.err
    assert domain_key(world.clinic).public_key.fingerprint in asked.err
    assert not (world.mary.home / "keys" / "clinic.pub").exists()
    answer = world.answer(file)
    refused = world.clinic("domain", "connect", str(answer), stdin="\n")
    assert refused.code == 2
    assert domain_key(world.mary).public_key.fingerprint in refused.err
    assert world.clinic.do("keys", "groups")["groups"] == []


def test_nobody_takes_over_the_keys_of_a_type_that_is_not_theirs(world: Peers) -> None:
    """An invitation that offers the receiver its own type, with a key manager of the inviting side, is refused."""
    world.mary.do("type", "define", "domain/Ours@1", "--attribute", "secret:string:1")
    ours = peers.parse_peer_invitation(
        str(
            world.mary.do("domain", "invite-peer", "--for", "clinic", "--give", "x |- subscribe Ours")["invitation"]
        ).encode()
    ).invitation
    signed = peers.parse_peer_invitation(world.invite().read_bytes())
    assert signed.secret is not None
    forged = replace(signed.invitation, types=ours.types, rows=ours.rows)
    file = world.root / "forged.maia"
    made = peers.sign_peer_invitation(forged, domain_key(world.clinic), signed.secret)
    file.write_text(peers.format_peer_invitation(made), "utf-8")
    assert world.mary.refused("domain", "connect", str(file), "--yes") == (4, "NOT_THE_KEY_MANAGER")


@pytest.mark.parametrize("title", ["../out", "a/b", "", ".."])
def test_a_title_leads_nowhere(world: Peers, title: str) -> None:
    """What the inviting side calls the agreement becomes a file's name at the other, and no path."""
    signed = peers.parse_peer_invitation(world.invite().read_bytes())
    assert signed.secret is not None
    forged = peers.sign_peer_invitation(
        replace(signed.invitation, title=title), domain_key(world.clinic), signed.secret
    )
    file = world.root / "forged.maia"
    file.write_text(peers.format_peer_invitation(forged), "utf-8")
    assert world.mary.refused("domain", "connect", str(file), "--yes")[0] == 2
    assert sorted(path.name for path in world.root.iterdir()) == [
        "clinic",
        "forged.maia",
        "mary",
        "peer.maia",
        "shared",
    ]


def test_words_that_mean_something_else_are_not_signed(world: Peers) -> None:
    """A row that says ward and gives the patient is refused by whoever would sign it."""
    signed = peers.parse_peer_invitation(world.invite().read_bytes())
    other = peers.parse_peer_invitation(world.invite(give="researcher |- subscribe Result(patient)").read_bytes())
    assert signed.secret is not None
    row = replace(signed.invitation.rows[0], tag=other.invitation.rows[0].tag)
    forged = peers.sign_peer_invitation(
        replace(signed.invitation, rows=(row,)), domain_key(world.clinic), signed.secret
    )
    file = world.root / "forged.maia"
    file.write_text(peers.format_peer_invitation(forged), "utf-8")
    assert world.mary.refused("domain", "connect", str(file), "--yes") == (4, "AGREEMENT_MEANING")


# ---------------------------------------------------------------- what is offered, and its end


def test_only_what_one_may_give_is_offered(world: Peers) -> None:
    """A right of somebody else, an attribute that does not exist, nothing at all."""
    world.connect()
    offer = ("domain", "invite-peer", "--for", "Third", "--give")
    assert world.mary.refused(*offer, "x |- subscribe Result(ward)") == (3, "ISSUER_LACKS_RIGHT")
    assert world.clinic.refused(*offer, "x |- subscribe Result(wrd)")[1] == "POLICY_ATTRIBUTE"
    assert world.clinic.refused(*offer, "x |- subscribe Nothing")[1] == "POLICY_TYPE"
    assert world.clinic.refused(*offer, "x |- subscribe Result(ward = 'A')") == (2, "PEER_ROWS")
    assert world.clinic.refused(*offer[:-1])[0] == 2


@pytest.mark.requirement("13.16")
def test_disconnecting_revokes_all_and_changes_the_keys(world: Peers) -> None:
    """At once and without the other's consent; what it had is not given again on the old answer."""
    world.connect()
    connected = datetime.now(UTC)
    before = {group["group"]: group["epoch"] for group in world.clinic.do("keys", "groups")["groups"]}
    done = world.clinic.do("domain", "disconnect", "St Mary's", "--yes")
    assert (done["did"], done["certificates"]) == ("ended", 2)
    after = {group["group"]: group["epoch"] for group in world.clinic.do("keys", "groups")["groups"]}
    changed = {name for name, epoch in after.items() if epoch > before[name]}
    assert changed == {"Result/ward", "Result/value"}
    assert {world.members(name) for name in ("ward", "value", "patient")} == {1}
    answer = str(world.root / "answer.maia")
    assert world.clinic.refused("domain", "connect", answer, "--yes") == (3, "WITHDRAWN")
    assert world.clinic.refused("domain", "disconnect", "St Mary's", "--yes")[1] == "NO_SUCH_PEER"
    mary = maia.open(world.mary.home)
    mary.follow(at=datetime.now(UTC))
    assert world.mary("verify", "--as", "ann", "--type", "clinic/Result@1", "--action", "subscribe").code == 4
    while datetime.now(UTC).replace(microsecond=0) <= connected:
        time.sleep(0.05)  # an agreement of the same second would be the one that was revoked
    assert world.admit(world.answer(world.invite(), "--reader", "ann"))["groups"] == 2


def test_titles_that_begin_alike_are_two_joins(world: Peers) -> None:
    """Each join has its own keys until it is answered, however long the name of the peer is."""
    for number, give in enumerate((GIVE, "clerk |- subscribe Result(patient)")):
        name = "Krankenhaus der Barmherzigen Brueder Nord"
        made = world.clinic.do("domain", "invite-peer", "--for", name, "--give", give)
        file = world.root / f"peer{number}.maia"
        file.write_text(str(made["invitation"]), "utf-8")
        world.answer(file)
    assert len(list((world.mary.home / "peers").glob("*.joining"))) == 2
