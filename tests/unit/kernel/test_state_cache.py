"""The state of validity topics along a tree: first holder answers, anything may be forgotten, unknown denies."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from maia.authority import Decision, Root, Statement, StatementBook, Verifier, ask, unsafe_sign_statement
from maia.errors import UsageError
from maia.kernel import StateCache, StateChoice, StateReply, learn_state
from maia.principals import Certificate, KeyId, TestKind
from maia.testing import People, at, grant, listing, online

CRL = TestKind.CRL
P = People("met", "smith", "jones", "evil")
TOPIC = P.met.public_key.key_id
READ = (b"read",)


def right(who: str = "smith") -> Certificate:
    """Issue somebody's right, which obeys the police's list."""
    return grant(P.met, P[who], READ, tests=[online(CRL, P.met)])


class Publisher:
    """Answers with its newest statements and counts the questions."""

    def __init__(self, *statements: Statement, stamp: int = 0, delay: int = 0) -> None:
        self.statements = list(statements)
        self.asked = 0
        self.gone = False
        self.stamp, self.delay = stamp, delay

    def __call__(self, topic: KeyId) -> StateReply | None:
        """Answer, unless gone."""
        self.asked += 1
        if self.gone:
            return None
        raws = tuple(item.raw for item in self.statements)
        return StateReply(statements=raws, stamp=at(self.stamp), delay=timedelta(seconds=self.delay))


def decide(
    cache: StateCache | None, when: int, certificate: Certificate, presented: tuple[Statement, ...] = ()
) -> Decision:
    """Decide with an empty book that learns from what is presented and from the tree."""
    book = StatementBook()
    tests = [(test, certificate.certificate_id) for test in certificate.body.tests]
    learn_state(book, tests, presented=presented, cache=cache, at=at(when))
    verifier = Verifier([Root(subject=P.met.public_key)], statements=book)
    subject = certificate.body.subject
    return verifier.decide(ask(READ), principal=subject, evidence=[certificate], at=at(when))


def test_the_first_holder_answers_and_nobody_further_up_is_asked() -> None:
    """The second subscriber of a branch is answered one hop away, with no message at the publisher."""
    publisher = Publisher(listing(CRL, P.met, valid=(0, 60)))
    rendezvous = StateCache(publishers=[publisher])
    branch = StateCache(rendezvous)
    first, second = StateCache(branch), StateCache(branch)
    assert first.ask(TOPIC, at=at(1)).hops == 2
    assert publisher.asked == 1
    assert second.ask(TOPIC, at=at(1)).hops == 1
    assert publisher.asked == 1
    assert decide(second, 2, right())


def test_when_nobody_knows_the_state_is_unknown_which_denies() -> None:
    """Caches flushed and the publisher gone: unknown, DENY, unless the principal presents a statement."""
    current = listing(CRL, P.met, valid=(0, 60))
    publisher = Publisher(current)
    rendezvous = StateCache(publishers=[publisher])
    leaf = StateCache(StateCache(rendezvous))
    assert decide(leaf, 1, right())
    publisher.gone = True
    assert decide(leaf, 2, right())
    node: StateCache | None = leaf
    while node is not None:
        node.flush()
        node = node.parent
    assert leaf.ask(TOPIC, at=at(3)) is None
    assert decide(leaf, 3, right()).reason == "NO_STATEMENT"
    assert decide(leaf, 3, right(), presented=(current,))


def test_what_the_principal_presents_comes_first_and_is_checked_alike() -> None:
    """A current copy spares the question; a list that is over, or Evil's, does not help."""
    current, over = listing(CRL, P.met, valid=(60, 120), sequence=2), listing(CRL, P.met, valid=(0, 60))
    publisher = Publisher(current)
    cache = StateCache(publishers=[publisher])
    assert decide(cache, 70, right(), presented=(current,))
    assert publisher.asked == 0
    assert decide(None, 70, right(), presented=(over,)).reason == "NO_STATEMENT"
    assert decide(None, 70, right(), presented=(listing(CRL, P.evil, valid=(60, 120)),)).reason == "NO_STATEMENT"
    assert decide(cache, 70, right(), presented=(over,))


def timeline(revoked: Certificate, rng: random.Random) -> list[tuple[int, Statement]]:
    """Draw what an issuer publishes in ten minutes: a list a minute, from some minute on with the withdrawn right."""
    turn = rng.randrange(1, 10)
    return [
        (60 * n, listing(CRL, P.met, [revoked] if n >= turn else [], sequence=n + 1, valid=(60 * n, 60 * n + 60)))
        for n in range(10)
    ]


class Tree:
    """A rendezvous, two branches and four leaves over one publisher."""

    def __init__(self, capacity: int = 10_000) -> None:
        self.publisher = Publisher()
        self.rendezvous = StateCache(publishers=[self.publisher], capacity=capacity)
        self.branches = [StateCache(self.rendezvous, capacity=capacity) for _ in range(2)]
        self.leaves = [StateCache(self.branches[n // 2], capacity=capacity) for n in range(4)]
        self.all = [self.rendezvous, *self.branches, *self.leaves]


def damage(tree: Tree, rng: random.Random, old: list[Statement], revoked: Certificate) -> None:
    """Do something bad to a random cache: forget, age, corrupt, forge."""
    cache = rng.choice(tree.all)
    what = rng.randrange(5)
    if what == 0:
        cache.evict(TOPIC)
    elif what == 1:
        cache.flush()
    elif what == 2 and old:
        cache.flush()
        cache.learn(TOPIC, [rng.choice(old).raw])
    elif what == 3 and old:
        raw = bytearray(old[-1].raw)
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        cache.flush()
        cache.learn(TOPIC, [bytes(raw), b"junk"])
    elif old:
        start = old[-1].body.starts
        forged = listing(CRL, P.met, sequence=999, valid=(start, start + timedelta(seconds=60))).body
        cache.flush()
        cache.learn(TOPIC, [unsafe_sign_statement(forged, P.evil), listing(CRL, P.evil, [revoked]).raw])


@pytest.mark.threat("T33")
@pytest.mark.parametrize("seed", range(20))
def test_caches_may_forget_age_and_lie_without_changing_an_answer(seed: int) -> None:
    """Every decision, at every leaf, is the one of a run without any cache; a new broker that starts empty included."""
    rng = random.Random(seed)
    smith, jones = right(), right("jones")
    tree, seen = Tree(), []
    for second, statement in timeline(smith, rng):
        tree.publisher.statements = [statement]
        seen.append(statement)
        for _ in range(4):
            damage(tree, rng, seen[:-1] if rng.random() < 0.7 else seen, smith)
            when = second + rng.randrange(60)
            leaf = rng.choice([*tree.leaves, StateCache(rng.choice(tree.branches))])
            for certificate in (smith, jones):
                plain = decide(StateCache(publishers=[Publisher(statement)]), when, certificate)
                assert decide(leaf, when, certificate).reason == plain.reason


def test_lists_that_are_over_are_purged_when_somebody_asks() -> None:
    """A broker that knows the semantics keeps no dead list."""
    cache = StateCache()
    cache.learn(TOPIC, [listing(CRL, P.met, valid=(0, 60)).raw])
    assert len(cache.held(TOPIC, at=at(59))) == 1
    assert cache.held(TOPIC, at=at(60)) == ()
    assert cache.held(TOPIC, at=at(59)) == ()


REPLIES = {
    "the newest within the limit": (StateChoice.NEWEST, [(5, 1), (9, 2)], 9),
    "the newest comes too late": (StateChoice.NEWEST, [(5, 1), (9, 11)], 5),
    "the first, though older": (StateChoice.FIRST, [(9, 2), (5, 1)], 5),
    "the first, which is newer": (StateChoice.FIRST, [(5, 2), (9, 1)], 9),
    "all too late": (StateChoice.FIRST, [(5, 11)], None),
}


@pytest.mark.parametrize("choice, replies, chosen", REPLIES.values(), ids=REPLIES)
def test_of_several_publishers_the_newest_or_the_first_counts(
    choice: StateChoice, replies: list[tuple[int, int]], chosen: int | None
) -> None:
    """Replies t=5 and t=9 within the limit: t=9; in `first` mode whichever came first; kept at the rendezvous."""
    publishers = [
        Publisher(listing(CRL, P.met, sequence=stamp, valid=(0, 60)), stamp=stamp, delay=delay)
        for stamp, delay in replies
    ]
    rendezvous = StateCache(publishers=publishers, choice=choice, limit=timedelta(seconds=10))
    found = StateCache(rendezvous).ask(TOPIC, at=at(20))
    assert (None if found is None else found.statements[0].body.sequence) == chosen
    if chosen is not None:
        again = StateCache(rendezvous).ask(TOPIC, at=at(21))
        assert (again.statements, again.hops) == (found.statements, 1)
        assert [publisher.asked for publisher in publishers] == [1] * len(publishers)


def test_a_publisher_that_lies_is_passed_over() -> None:
    """The newest answer is forged: the next one counts."""
    good = Publisher(listing(CRL, P.met, valid=(0, 60)), stamp=5)
    liar = Publisher(listing(CRL, P.evil, valid=(0, 60)), stamp=9)
    assert decide(StateCache(publishers=[good, liar]), 1, right())


def test_caches_are_bounded_and_the_tree_is_not_endless() -> None:
    """The oldest topic goes; a way that is too long, and a broker that asks publishers itself, are refused."""
    cache = StateCache(capacity=2)
    for who in ("met", "jones", "evil"):
        cache.learn(P[who].public_key.key_id, [listing(CRL, P[who], valid=(0, 60)).raw])
    assert cache.held(TOPIC, at=at(1)) == ()
    assert cache.held(P.evil.public_key.key_id, at=at(1))
    deep = StateCache()
    for _ in range(300):
        deep = StateCache(deep)
    with pytest.raises(UsageError, match="TREE_TOO_DEEP"):
        deep.ask(TOPIC, at=at(1))
    with pytest.raises(UsageError):
        StateCache(cache, publishers=[Publisher()])
    with pytest.raises(UsageError):
        StateCache(capacity=0)
