"""Which validity lists a key manager takes up from the log, and whose it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from key_manager_world import DOMAIN, EVE, GROUPS, OWNER, Broker, World, moment, read_everything

from maia.authority import CertificatePool
from maia.errors import RevokedError, UnavailableError, VerificationError
from maia.key_manager.demanded_lists import demanded_by
from maia.principals import KeySigner, Name, TestKind, Threshold
from maia.testing import grant, listing, naming, online

FRIEND, LISTER = KeySigner(b"f" * 32), KeySigner(b"l" * 32)
DOMAINS_LIST = online(TestKind.CRL, DOMAIN)
TO_DOMAIN = grant(OWNER, DOMAIN, read_everything(), delegate=True)


def listed(*certificates):
    """Name the signers whose lists count when the owner's certificates lead there."""
    return demanded_by(CertificatePool(certificates), [OWNER.public_key])


def lister_of(issuer, subject):
    """Give a right that demands the lister's list."""
    return grant(issuer, subject, read_everything(), delegate=True, tests=[online(TestKind.CRL, LISTER)])


def forged():
    """Give a certificate that says it is the owner's, with a signature that is not."""
    raw = lister_of(OWNER, EVE).raw
    return raw[:-30] + bytes(28) + raw[-2:]


CASES = {
    "the owner's own certificate": ([lister_of(OWNER, DOMAIN)], True),
    "a certificate further down": ([TO_DOMAIN, lister_of(DOMAIN, FRIEND)], True),
    "two steps down, in any order": (
        [lister_of(FRIEND, EVE), grant(DOMAIN, FRIEND, read_everything()), TO_DOMAIN],
        True,
    ),
    "through a name of a key": (
        [grant(OWNER, Name(DOMAIN.public_key, ("brokers",)), read_everything()), lister_of(DOMAIN, FRIEND)],
        True,
    ),
    "a name certificate": ([TO_DOMAIN, naming(DOMAIN, "brokers", FRIEND, tests=[online(TestKind.CRL, LISTER)])], True),
    "a stranger's certificate": ([TO_DOMAIN, lister_of(EVE, FRIEND)], False),
    "a stranger who grants to the domain": ([lister_of(EVE, DOMAIN)], False),
    "octets that nobody can read": ([b"(certificate)"], False),
    "a forged certificate of the owner": ([forged()], False),
    "an answer for one time, which is in no log": (
        [grant(OWNER, DOMAIN, read_everything(), tests=[online(TestKind.ONE_TIME, LISTER)])],
        False,
    ),
}


@pytest.mark.parametrize(("shown", "heard"), CASES.values(), ids=CASES)
def test_only_what_leads_down_from_an_owner_names_lists(shown, heard):
    """Evidence is a stranger's until it is judged: who was given nothing cannot make a manager keep lists."""
    assert listed(*shown) == (frozenset((LISTER.public_key.key_id,)) if heard else frozenset())


def test_an_owner_of_several_keys_is_each_of_them():
    """Chains from a threshold begin at any of its members."""
    owner = Threshold(2, (OWNER.public_key, DOMAIN.public_key, FRIEND.public_key))
    pool = CertificatePool([lister_of(FRIEND, EVE)])
    assert demanded_by(pool, [owner]) == {LISTER.public_key.key_id}
    assert demanded_by(pool, [Threshold(1, (OWNER.public_key,))]) == frozenset()


class Listening:
    """A way to the lists: what the manager asked for, and a list of the domain that comes with the asking."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked: list[frozenset[bytes]] = []
        self.waiting = []
        self.broken = False

    def __call__(self, signers, at):
        if self.broken:
            raise UnavailableError("no log", code="LOG_AWAY")
        self.asked.append(signers)
        if DOMAIN.public_key.key_id in signers:
            for statement in self.waiting:
                self.world.book.accept(statement)
            self.waiting = []


@pytest.fixture
def world(tmp_path: Path):
    """Give a manager that listens, with open groups."""
    made = World(tmp_path)
    made.listening = Listening(made)
    made.manager = made.make(heed=made.listening)
    made.open()
    return made


def test_a_broker_is_judged_by_the_lists_of_that_moment_and_of_each_round(world):
    """Its domain's list comes with its request; the next one, which names it, with the next round."""
    broker, other = Broker("b", tests=[DOMAINS_LIST]), Broker("c")
    world.listening.waiting = [listing(TestKind.CRL, DOMAIN)]
    world.join(other, 1)
    assert world.listening.asked == []  # nothing that it shows demands a list
    assert world.join(broker, 2) == {group.label for group in GROUPS}
    world.listening.waiting = [listing(TestKind.CRL, DOMAIN, [broker.chain[1]], sequence=2)]
    assert world.manager.tick(at=moment(3)) == GROUPS
    assert {status.members for status in world.manager.status()} == {1}
    assert world.listening.asked == [{DOMAIN.public_key.key_id}] * 2
    with pytest.raises(VerificationError):
        world.join(broker, 4)
    again = world.make(heed=world.listening)
    again.tick(at=moment(5))  # another process asks for the same
    assert world.listening.asked[-1] == {DOMAIN.public_key.key_id}


def test_lists_that_a_broker_brings_count_like_those_of_the_log(world):
    """Timed ones of signers that its certificates name, and plain ones beside them; none that has no end alone."""
    broker, now = Broker("b", tests=[DOMAINS_LIST]), moment(2)
    hour = (moment(0), moment(3600))
    world.manager = world.make(heed=world.listening, take=lambda lists, at: [world.book.accept(item) for item in lists])
    plain, strange = listing(TestKind.CRL, DOMAIN), listing(TestKind.CRL, EVE, valid=hour)
    over = listing(TestKind.CRL, DOMAIN, valid=(moment(0), moment(1)))
    for brought in ((), (plain,), (strange,), (plain, over)):
        with pytest.raises(VerificationError):
            world.manager.join(
                broker.ask(world.manager, now), [*broker.evidence, *(item.raw for item in brought)], at=now
            )
    assert not world.book.raw_statements()
    timed = listing(TestKind.CRL, DOMAIN, valid=hour)
    world.manager.join(broker.ask(world.manager, now), [*broker.evidence, timed.raw], at=now)
    assert world.book.raw_statements() == (timed.raw,)
    assert {status.members for status in world.manager.status()} == {1}
    now = moment(3)
    revoked = listing(TestKind.CRL, DOMAIN, [broker.chain[1]], sequence=2)
    with pytest.raises(RevokedError):
        world.manager.join(broker.ask(world.manager, now), [*broker.evidence, timed.raw, revoked.raw], at=now)


def test_lists_that_cannot_be_read_keep_no_timer_from_its_time(world):
    """The round says so, after all else was done; who wants to join has to come again."""
    world.join(Broker("c"), 1)
    world.listening.broken = True
    with pytest.raises(UnavailableError) as away:
        world.manager.tick(at=moment(3601))
    assert away.value.code == "LOG_AWAY"
    assert {len(world.manager.history(group)) for group in GROUPS} == {2}
    with pytest.raises(UnavailableError):
        world.join(Broker("b", tests=[DOMAINS_LIST]), 3602)
