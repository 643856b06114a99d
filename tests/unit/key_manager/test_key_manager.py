"""The key manager: admission, the refresh rules in a database, retries, repair, and what it refuses."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from key_manager_world import (
    DOMAIN,
    EVE,
    EXACT,
    GROUPS,
    OWNER,
    PLATE,
    TYPE,
    TYPE_ID,
    Broker,
    World,
    definition,
    moment,
    ms,
    read_everything,
)
from sqlalchemy import select, update

from maia import database
from maia.authority import CertificatePool, Verifier
from maia.database.key_groups import key_groups
from maia.encryption import (
    GroupRequest,
    JoinGroups,
    KeyGroupId,
    KeyTree,
    join_public_key,
    new_join_key,
    open_join_answer,
    rekey_topic,
    sign_group_request,
)
from maia.errors import (
    ChainError,
    DeniedError,
    EncodingError,
    ExpiredError,
    MaiaError,
    NotFoundError,
    SealError,
    SignatureError,
    UnavailableError,
    UncheckedError,
    UsageError,
    VerificationError,
)
from maia.events import EncryptionMode
from maia.kernel import KEY_MANAGER
from maia.key_manager import KeyManager, KeySettings, manager_secret
from maia.log import START, DirectoryStore, NoticeKind, NoticeLog
from maia.principals import TestKind
from maia.testing import grant, listing, naming, online


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Give a manager whose groups are open."""
    made = World(tmp_path)
    made.open()
    return made


def test_a_broker_is_admitted_on_its_chain_to_exactly_its_groups(world: World) -> None:
    """All attributes: every group; one attribute: one group; a client or a stranger: none, and nothing remains."""
    ann, bob = Broker("ann"), Broker("bob", attributes=["2"])
    assert world.join(ann, 1) == {b"*", b"1", b"2"}
    assert world.join(bob, 2) == {b"2"}
    client, stranger = Broker("client"), Broker("stranger")
    client.chain.pop()
    stranger.chain = stranger.chain[:1]
    for who, code in ((client, "NOT_A_BROKER"), (stranger, "NO_EVIDENCE")):
        with pytest.raises(VerificationError) as refused:
            world.join(who, 3)
        assert refused.value.code in {code, "BROKEN_CHAIN"}
    assert [status.members for status in world.manager.status()] == [1, 1, 2]


def test_everybody_inside_gets_the_same_key_from_the_log(world: World) -> None:
    """A welcome where no epoch was needed, the log for everything after."""
    ann, bob = Broker("ann"), Broker("bob")
    world.join(ann, 1)
    world.join(bob, 2)
    world.follow(ann, bob)
    for group in GROUPS:
        assert ann.keys[group][1].key == bob.keys[group][1].key
    assert world.manager.refresh(PLATE, at=moment(3)) == 2
    world.follow(ann, bob)
    assert ann.keys[PLATE][2].key == bob.keys[PLATE][2].key
    assert ann.newest(GROUPS[2]) == 1


def test_a_join_refreshes_unless_the_joiner_was_authorised_at_the_last_refresh(world: World) -> None:
    """Last refresh at 100: a capability from 90 needs none, one from 120 that joins at 130 does."""
    world.join(Broker("ann"), 100)
    world.join(Broker("early", valid=(moment(90), None)), 110)
    assert world.starts() == [100]
    world.join(Broker("late", valid=(moment(120), None)), 130)
    assert world.starts() == [100, 130]


LEAVES = {
    "the credential ends first": (260, None, [100, 260.001]),
    "the period ends first": (400, None, [100, 300]),
    "revoked meanwhile": (400, 210, [100, 210]),
}


@pytest.mark.threat("T42")
@pytest.mark.parametrize("until, revoked, expected", LEAVES.values(), ids=LEAVES)
def test_a_leave_waits_for_the_end_the_period_or_the_revocation(tmp_path, until, revoked, expected) -> None:
    """Leaves at 200; whoever waits in vain is put out by one refresh, at the earlier instant."""
    world = World(tmp_path, settings=KeySettings(period=timedelta(seconds=200), lead=timedelta(seconds=1)))
    world.open()
    leaver = Broker("leaver", valid=(moment(50), moment(until)))
    world.join(Broker("stays"), 99)
    world.join(leaver, 110)
    assert leaver.leave(world.manager, moment(200)) == GROUPS
    for second in range(201, 305):
        if second + 1 == revoked:
            assert world.manager.revoke([leaver.chain[1].certificate_id], at=moment(second)) == GROUPS
        world.manager.tick(at=moment(second))
    assert world.starts() == expected
    world.follow(leaver)
    assert leaver.newest() == 1


def test_no_key_is_current_for_longer_than_the_period(tmp_path: Path) -> None:
    """The next epoch is announced ahead of its time and begins when the period is over."""
    world = World(tmp_path, settings=KeySettings(period=timedelta(seconds=60), lead=timedelta(seconds=5)))
    world.open()
    world.join(Broker("ann"), 0)
    for second in range(1, 300):
        world.manager.tick(at=moment(second))
    assert world.starts() == [5, 65, 125, 185, 245]
    assert {record.causes for record in world.manager.history(PLATE)[1:]} == {("period",)}


def test_an_end_puts_out_and_a_renewal_in_time_does_not(world: World) -> None:
    """An admission on statements is renewed by the next list, and over without one."""
    crl = [online(TestKind.CRL, DOMAIN)]
    world.book.accept(listing(TestKind.CRL, DOMAIN, valid=(moment(-100), moment(50))))
    ann, bob = Broker("ann"), Broker("bob", tests=crl)
    world.join(ann, 0)
    world.join(bob, 10)
    epochs = len(world.starts())
    world.book.accept(listing(TestKind.CRL, DOMAIN, sequence=2, valid=(moment(50), moment(80))))
    for second in range(11, 80):
        assert world.manager.tick(at=moment(second)) == ()
    assert set(world.manager.tick(at=moment(80))) == set(GROUPS)
    world.follow(ann, bob)
    assert (ann.newest(), bob.newest()) == (epochs + 1, epochs)
    assert [(record.kind, record.member) for record in world.manager.changes(PLATE)][-1] == ("end", bob.name)


def test_a_list_that_revokes_puts_out_at_the_next_tick_and_a_later_one_lets_in_again(world: World) -> None:
    """What statements say now is what counts, in both directions; coming back takes a join and a refresh."""
    crl = [online(TestKind.CRL, DOMAIN)]
    world.book.accept(listing(TestKind.CRL, DOMAIN))
    ann, bob = Broker("ann"), Broker("bob", tests=crl)
    world.join(ann, 0)
    world.join(bob, 1)
    world.manager.tick(at=moment(2))
    world.book.accept(listing(TestKind.CRL, DOMAIN, [bob.chain[1]], sequence=2))
    assert set(world.manager.tick(at=moment(3))) == set(GROUPS)
    with pytest.raises(VerificationError):
        world.join(bob, 4)
    world.book.accept(listing(TestKind.CRL, DOMAIN, sequence=3))
    assert world.manager.tick(at=moment(5)) == ()
    assert world.join(bob, 6) == {b"*", b"1", b"2"}
    world.follow(ann, bob)
    assert ann.newest() == bob.newest() == len(world.starts())


def test_statements_say_nothing_about_the_time_before_them(world: World) -> None:
    """A revalidation that began after the last refresh proves no authority then, so the join refreshes."""
    world.join(Broker("ann"), 0)
    again = [online(TestKind.REVALIDATION, DOMAIN)]
    bob = Broker("bob", tests=again)
    world.book.accept(listing(TestKind.REVALIDATION, DOMAIN, [bob.chain[1]], valid=(moment(10), moment(100))))
    world.join(bob, 20)
    assert world.starts() == [0, 20]


def test_one_chain_lost_and_another_left_changes_nothing(world: World) -> None:
    """Two supports, one revoked: no refresh. Both revoked: out, and the revoked chain lets nobody back in."""
    ann = Broker("ann")
    second = grant(DOMAIN, ann.signer, read_everything(), valid=(moment(-500), None))
    ann.chain.append(second)
    world.join(ann, 0)
    assert world.manager.revoke([ann.chain[1].certificate_id], at=moment(1)) == ()
    assert world.manager.revoke([second.certificate_id], at=moment(2)) == GROUPS
    with pytest.raises(VerificationError):
        world.join(ann, 3)
    assert world.manager.revoke([second.certificate_id], at=moment(4)) == ()


@pytest.mark.threat("T46")
def test_a_key_that_all_brokers_together_used_up_is_refreshed(tmp_path: Path) -> None:
    """The cap lowered to 1,000: blocks are added over brokers; those of other epochs and of strangers do not count."""
    world = World(tmp_path, settings=KeySettings(period=None, lead=timedelta(0), cap=1000))
    world.open()
    ann, bob = Broker("ann", publishes=True), Broker("bob", publishes=True)
    eve = Broker("eve", attributes=["2"], publishes=True)
    for second, who in enumerate((ann, bob, eve)):
        world.join(who, second)
    assert ann.count(world.manager, moment(10), (b"1", 1, 600), (b"2", 1, 5)) == ()
    assert eve.count(world.manager, moment(10), (b"1", 1, 600)) == ()
    assert bob.count(world.manager, moment(11), (b"1", 7, 600)) == ()
    assert bob.count(world.manager, moment(12), (b"1", 1, 400)) == (PLATE,)
    assert world.manager.history(PLATE)[-1].causes == ("use",)
    assert bob.count(world.manager, moment(13), (b"1", 1, 5000)) == ()
    with pytest.raises(VerificationError):
        bob.count(world.manager, moment(12.5), (b"1", 2, 1))


@pytest.mark.threat("T46")
def test_key_use_is_believed_from_publishers_and_within_what_time_allows(world: World) -> None:
    """Who may only read refreshes no key with a report, and nobody with a count that no machine can reach."""
    reader, writer = Broker("ann"), Broker("bob", publishes=True)
    world.join(reader, 0)
    world.join(writer, 1)
    before = len(world.manager.history(PLATE))
    with pytest.raises(DeniedError, match="NOT_A_PUBLISHER"):
        reader.count(world.manager, moment(10), (b"1", before - 1, 10**15))
    with pytest.raises(DeniedError, match="USE_NOT_BELIEVED"):
        writer.count(world.manager, moment(10), (b"1", before - 1, 10**15))
    assert writer.count(world.manager, moment(11), (b"1", before - 1, 10**6)) == ()
    assert len(world.manager.history(PLATE)) == before


def test_an_answer_that_was_lost_is_given_again_and_a_lost_state_gets_a_new_place(world: World) -> None:
    """The same request, the same keys; a later one of a member, new keys, and the old ones lead nowhere."""
    ann, bob = Broker("ann"), Broker("bob")
    world.join(ann, 0)
    first = world.manager.join(bob.ask(world.manager, moment(1)), bob.evidence, at=moment(1))
    again = world.manager.join(bob.request, bob.evidence, at=moment(2))
    opened = [
        {p.group: (p.individual, p.welcome) for p in open_join_answer(
            answer, bob.private, member=bob.signer.public_key.key_id, manager=OWNER.public_key)}
        for answer in (first, again)
    ]  # fmt: skip
    assert opened[0] == opened[1]
    bob.take(first, world.manager)
    lost = bob.members[PLATE]
    assert world.join(bob, 3) == {b"*", b"1", b"2"}
    assert world.starts() == [0]
    world.manager.refresh(PLATE, at=moment(4))
    world.follow(ann, bob)
    assert ann.keys[PLATE][2].key == bob.keys[PLATE][2].key
    bob.members[PLATE], bob.read[PLATE], bob.keys = lost, START, {}
    world.follow(bob)
    assert bob.newest() == 0


def test_back_before_the_wait_is_over_changes_no_key(world: World) -> None:
    """A leaver still holds the key; one that comes back gets its welcome, and is inside again."""
    ann, bob = Broker("ann"), Broker("bob")
    world.join(ann, 0)
    world.join(bob, 1)
    bob.leave(world.manager, moment(2), b"1")
    assert [status.members for status in world.manager.status()] == [2, 1, 2]
    world.join(bob, 3)
    assert [status.members for status in world.manager.status()] == [2, 2, 2]
    assert world.starts() == [0]


REFUSED = {
    "a stale request": (
        lambda w, b: w.manager.join(b.ask(w.manager, moment(0)), b.evidence, at=moment(61)), ExpiredError),
    "a request of tomorrow": (
        lambda w, b: w.manager.join(b.ask(w.manager, moment(100)), b.evidence, at=moment(10)), ExpiredError),
    "a request for another manager": (
        lambda w, b: w.manager.join(
            sign_group_request(GroupRequest(
                manager=EVE.public_key.key_id, type_id=TYPE_ID, stamp=ms(1),
                what=JoinGroups(key=join_public_key(new_join_key()))), b.signer), b.evidence, at=moment(1)),
        VerificationError),
    "a request about an unknown type": (
        lambda w, b: w.manager.join(
            sign_group_request(GroupRequest(
                manager=OWNER.public_key.key_id, type_id=bytes(32), stamp=ms(1),
                what=JoinGroups(key=join_public_key(new_join_key()))), b.signer), b.evidence, at=moment(1)),
        NotFoundError),
    "a key that is no point": (
        lambda w, b: w.manager.join(
            b.sign(w.manager, JoinGroups(key=bytes(32)), moment(1)), b.evidence, at=moment(1)), UsageError),
    "a leave where a join is wanted": (
        lambda w, b: w.manager.leave(b.ask(w.manager, moment(1)), at=moment(1)), UsageError),
    "a join where a leave is wanted": (
        lambda w, b: w.manager.join(b.ask(w.manager, moment(1))[:-1], b.evidence, at=moment(1)), EncodingError),
    "a flipped bit": (
        lambda w, b: w.manager.join(
            b.ask(w.manager, moment(1))[:-2] + b"x)", b.evidence, at=moment(1)), SignatureError),
    "too much evidence": (
        lambda w, b: w.manager.join(
            b.ask(w.manager, moment(1)),
            [naming(DOMAIN, f"n{n}", b.signer).raw for n in range(1001)], at=moment(1)), UncheckedError),
}  # fmt: skip


@pytest.mark.parametrize("ask, error", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_leaves_no_trace(world: World, ask, error) -> None:
    """A refused request changes nothing: no epoch, no member, no stamp."""
    broker = Broker("ann")
    with pytest.raises(error):
        ask(world, broker)
    assert {(status.number, status.members) for status in world.manager.status()} == {(0, 0)}
    assert world.join(broker, 30)


def test_requests_of_a_broker_are_taken_in_their_order(world: World) -> None:
    """A replayed join of yesterday's key, or two joins with one stamp, are refused."""
    ann = Broker("ann")
    old = ann.ask(world.manager, moment(1))
    world.join(ann, 2)
    for request in (old, ann.ask(world.manager, moment(2))):
        with pytest.raises(VerificationError) as refused:
            world.manager.join(request, ann.evidence, at=moment(3))
        assert refused.value.code == "REPLAY"


def test_a_full_group_and_a_right_that_ends_at_once_are_refused(tmp_path: Path) -> None:
    """Limits are stated, and a key that would begin after the right's end is not given."""
    world = World(tmp_path, settings=KeySettings(lead=timedelta(seconds=5), max_members=1))
    world.open()
    with pytest.raises(ExpiredError) as refused:
        world.join(Broker("brief", valid=(None, moment(3))), 0)
    assert refused.value.code == "RIGHT_ENDS"
    world.join(Broker("ann"), 1)
    with pytest.raises(UncheckedError):
        world.join(Broker("bob"), 2)


def test_only_the_owner_or_whom_it_names_manages_a_type(tmp_path: Path) -> None:
    """Another key opens no group of the type, until the owner names it."""
    world = World(tmp_path)
    other = KeyManager(
        world.engine, EVE, manager_secret(EVE.export_seed()), verifier=Verifier,
        versions=lambda _type, _at: [TYPE.event_type], notices=world.notices,
    )  # fmt: skip
    with pytest.raises(ChainError):
        other.open_groups([TYPE], CertificatePool(), at=moment(0))
    appointed = CertificatePool([naming(OWNER, KEY_MANAGER, EVE)])
    assert other.open_groups([TYPE], appointed, at=moment(0)) == GROUPS


def test_a_new_version_brings_groups_and_may_close_the_one_of_whole_events(world: World) -> None:
    """A right to two attributes no longer opens whole events when a third attribute comes."""
    ann = Broker("ann", attributes=["1", "2"])
    assert world.join(ann, 0) == {b"*", b"1", b"2"}
    world.versions.append(definition("2", uids=("1", "2", "3")))
    assert {group.label for group in world.open(1)} == {b"*", b"1", b"2", b"3"}
    world.book.accept(listing(TestKind.CRL, DOMAIN))  # any news lets the manager look again
    assert [group.label for group in world.manager.tick(at=moment(2))] == [b"*"]
    assert definition(mode=EncryptionMode.EVENT).event_type.type_id == TYPE_ID


def test_nothing_is_stored_in_the_clear_and_nothing_altered_is_believed(world: World) -> None:
    """Neither the tree's keys nor a broker's stand in the database; a swapped row does not open."""
    ann = Broker("ann")
    world.join(ann, 0)
    world.follow(ann)
    world.manager.refresh(PLATE, at=moment(1))
    secrets = [ann.keys[PLATE][1].key, ann.members[PLATE]._individual, *ann.members[PLATE]._path]
    octets = b"".join(path.read_bytes() for path in world.root.glob("store.db*"))
    assert octets
    assert not any(secret in octets for secret in secrets)
    with database.transaction(world.engine) as connection:
        rows = {row.label: row.sealed for row in connection.execute(select(key_groups))}
        connection.execute(update(key_groups).where(key_groups.c.label == b"1").values(sealed=rows[b"2"]))
    with pytest.raises(SealError):
        world.manager.refresh(PLATE, at=moment(2))
    for shown in (repr(world.manager), repr(world.manager._register.vault)):
        assert not any(secret.hex() in shown or repr(secret) in shown for secret in secrets)


@pytest.mark.fault("F23")
def test_a_database_older_than_the_log_begins_no_epoch_until_it_is_repaired(world: World, tmp_path: Path) -> None:
    """Restored from a backup: refused by name; the repair goes on behind the log, and only with who is inside."""
    ann, bob, cat, dan = (Broker(name) for name in ("ann", "bob", "cat", "dan"))
    for second, who in enumerate((ann, bob, cat)):
        world.join(who, second)
    world.engine.dispose()
    shutil.copytree(tmp_path, tmp_path.parent / f"{tmp_path.name}-backup", ignore=shutil.ignore_patterns("log"))
    world.manager.revoke([bob.chain[1].certificate_id], at=moment(10))
    world.join(dan, 11)
    world.manager.refresh(PLATE, at=moment(12))
    world.follow(ann, bob, cat, dan)
    before = world.published()
    restored = World(tmp_path.parent / f"{tmp_path.name}-backup")
    restored.notices = world.notices
    restored.manager = restored.make()
    with pytest.raises(UnavailableError) as refused:
        restored.manager.start(at=moment(13))
    assert refused.value.code == "KEY_MANAGER_BEHIND"
    assert {status.behind for status in restored.manager.status()} == {True}
    for change in (
        lambda: restored.manager.refresh(PLATE, at=moment(20)),
        lambda: restored.join(Broker("new"), 20),
        lambda: restored.manager.tick(at=moment(10_000)),
    ):
        with pytest.raises(UnavailableError):
            change()
    assert world.published() == before
    for group in GROUPS:
        number = restored.manager.repair(group, at=moment(30))
        assert number == restored.published(group)[-1] == len(restored.published(group))
    assert restored.published() == [*before, before[-1] + 1]
    assert restored.manager.start(at=moment(30)) == 0
    restored.follow(ann, bob, cat, dan)
    newest = restored.published()[-1]
    assert ann.newest() == cat.newest() == newest
    assert ann.keys[PLATE][newest].key == cat.keys[PLATE][newest].key
    assert newest not in bob.keys[PLATE]
    assert newest not in dan.keys[PLATE]
    assert restored.join(dan, 31)
    restored.manager.refresh(PLATE, at=moment(32))
    restored.follow(ann, dan)
    assert ann.keys[PLATE][newest + 1].key == dan.keys[PLATE][newest + 1].key
    with pytest.raises(UsageError):
        restored.manager.repair(PLATE, at=moment(33))


@pytest.mark.fault("F23")
def test_a_member_offline_over_three_epochs_catches_up_with_what_it_may_have(world: World) -> None:
    """It gets the keys between as well, and one that was put out meanwhile gets none from there on."""
    ann, bob = Broker("ann"), Broker("bob")
    world.join(ann, 0)
    world.join(bob, 1)
    world.follow(ann, bob)
    world.manager.refresh(PLATE, at=moment(2))
    world.manager.revoke([bob.chain[1].certificate_id], at=moment(3))
    world.manager.refresh(PLATE, at=moment(4))
    world.follow(ann, bob)
    assert sorted(ann.keys[PLATE]) == [1, 2, 3, 4]
    assert sorted(bob.keys[PLATE]) == [1, 2]


def test_others_may_write_into_the_log_and_change_nothing(world: World, tmp_path: Path) -> None:
    """Garbage and messages of another manager are as if they were not there, and give way to the manager's own."""
    ann = Broker("ann")
    world.join(ann, 0)
    rogue, others = KeyTree(PLATE), NoticeLog(tmp_path / "log", own=tmp_path / "eve")
    for start in range(1, 9):
        message = rogue.rekey(EVE, start=start, joins={b"eve": b"E" * 32} if start == 1 else None)
        others.say(NoticeKind.REKEY, EVE, rekey_topic(PLATE), message.to_bytes(), at=moment(start))
    folder = tmp_path / "log" / world.lane().lane.folder
    (folder / "000000000001.record").write_bytes(b"garbage")
    os.mkfifo(folder / "000000000002.record")
    (folder / "000000000003.record").mkdir()
    (folder / "000000000004.record").symlink_to("/dev/zero")
    (folder / "999999999999.record").write_bytes(b"x")
    (folder / "head").unlink()
    os.mkfifo(folder / "head")
    assert world.manager.start(at=moment(1)) == 0
    assert [world.manager.refresh(PLATE, at=moment(second)) for second in range(2, 7)] == [2, 3, 4, 5, 6]
    world.manager.tick(at=moment(8))
    assert world.published() == [1, 2, 3, 4, 5, 6]
    world.follow(ann)
    assert ann.newest() == 6
    assert {status.behind for status in world.manager.status()} == {False}


def test_an_unpublished_message_is_published_at_the_next_start_in_order(world: World, monkeypatch) -> None:
    """A log that fails keeps an answer back, and nothing else; what was committed comes when it is well, each once."""
    ann = Broker("ann")
    with monkeypatch.context() as broken:
        for verb in ("put", "put_new"):
            broken.setattr(DirectoryStore, verb, _fail)
        with pytest.raises(UnavailableError) as refused:
            world.join(ann, 0)
        assert refused.value.code == "REKEYS_UNPUBLISHED"
        assert world.manager.refresh(PLATE, at=moment(1)) == 2, "it counts, and waits"
        assert world.manager.start(at=moment(1)) == 0
        with pytest.raises(UnavailableError) as refused:
            world.manager.tick(at=moment(1))
        assert refused.value.code == "REKEYS_UNPUBLISHED"
    assert {status.unpublished for status in world.manager.status()} == {1, 2}
    assert world.make().start(at=moment(2)) == 4
    assert world.published() == [1, 2]
    assert ann.take(world.manager.join(ann.request, ann.evidence, at=moment(2)), world.manager)
    world.follow(ann)
    assert ann.newest() == 2


def _fail(*_arguments: object) -> int:
    raise UnavailableError("no log", code="FILE_UNAVAILABLE")


def test_only_the_leader_writes(world: World) -> None:
    """A standby reads; after the leader is gone it goes on where that one stopped."""
    first, second = (database.Leadership(world.engine, "key-manager") for _ in range(2))
    leader, standby = world.make(leadership=first), world.make(leadership=second)
    assert first.try_lead()
    assert not second.try_lead()
    ann = Broker("ann")
    ann.join(leader, moment(0))
    with pytest.raises(UnavailableError) as refused:
        standby.refresh(PLATE, at=moment(1))
    assert refused.value.code == "NOT_LEADER"
    assert standby.status()[0].members == 1
    first.resign()
    assert second.try_lead()
    assert standby.refresh(PLATE, at=moment(2)) == 2
    with pytest.raises(UnavailableError):
        leader.refresh(PLATE, at=moment(3))
    second.resign()


def test_picture_and_records_name_who_came_and_went(world: World) -> None:
    """The tree's shape, the epochs with their causes and costs, and the changes; records end with their time."""
    ann, bob = Broker("ann"), Broker("bob")
    world.join(ann, 0)
    world.join(bob, 1)
    picture = world.manager.picture(PLATE)
    assert (picture.height, picture.places, picture.waiting) == (0, ((0, ann.name),), (bob.name,))
    bob.leave(world.manager, moment(2))
    assert [record.kind for record in world.manager.changes(PLATE)] == ["join", "join", "leave"]
    (epoch,) = world.manager.history(PLATE)
    assert (epoch.number, epoch.causes, epoch.keys, epoch.published) == (1, ("join",), 1, True)
    assert epoch.octets > 300
    world.manager.tick(at=moment(0) + EXACT.history * 2)
    assert world.manager.changes(PLATE) == ()
    with pytest.raises(NotFoundError):
        world.manager.picture(KeyGroupId(TYPE_ID, b"9"))


SETTINGS = {
    "no period": {"period": timedelta(0)},
    "a negative lead": {"lead": timedelta(seconds=-1)},
    "a lead as long as the period": {"period": timedelta(seconds=5), "lead": timedelta(seconds=5)},
    "no members": {"max_members": 0},
    "no window": {"window": timedelta(0)},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_settings_that_cannot_work_are_refused(settings) -> None:
    """Before anything is managed."""
    with pytest.raises(UsageError):
        KeySettings(**settings)


def test_any_octets_as_a_request_raise_only_maia_errors(world: World) -> None:
    """Requests come from strangers."""
    request = Broker("ann").ask(world.manager, moment(1))
    for cut in range(0, len(request), 7):
        for data in (request[:cut], request[cut:], request[:cut] + b"\x00" + request[cut:]):
            for method in (world.manager.leave, world.manager.count_use):
                with pytest.raises(MaiaError):
                    method(data, at=moment(1))


@pytest.mark.fault("F13")
def test_what_cannot_be_looked_up_keeps_no_other_group_from_its_time(world: World) -> None:
    """A registry that is away: ends come all the same. A group that waits for a repair stops only itself."""
    ann, bob = Broker("ann"), Broker("bob", valid=(None, moment(50)))
    world.join(ann, 0)
    world.join(bob, 1)
    away = world.make(versions=_away)
    with pytest.raises(UnavailableError):
        away.tick(at=moment(51))
    assert world.starts() == [0, 51]
    world.follow(ann, bob)
    assert (ann.newest(), bob.newest()) == (2, 1)
    message = KeyTree(PLATE).rekey(OWNER, start=1, joins={b"x": b"X" * 32})
    world.sign_elsewhere(message.to_bytes())
    with pytest.raises(UnavailableError) as refused:
        world.manager.tick(at=moment(51 + 3600))
    assert refused.value.code == "KEY_MANAGER_BEHIND"
    assert [status.number for status in world.manager.status()] == [3, 2, 3]


def _away(*_arguments: object) -> list[object]:
    raise UnavailableError("no registry", code="REGISTRY_UNAVAILABLE")
