"""Whole decisions against a naive reading of the model: who holds the right, by brute force.

The oracle knows nothing of graphs, fixpoints over names or packing. It enumerates: the meanings of names until nothing
changes, every way of meeting a threshold with distinct keys (all combinations of members, all keys of each), and the
keys that pass the right on, again until nothing changes.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from hypothesis import given
from strategies_trust import LONG, NOW, SIGNERS, member, randoms

from maia.authority import Held, ProofTree, Root, Verifier, ask
from maia.encoding import Sexp
from maia.principals import (
    Authorisation,
    KeyHash,
    KeyId,
    Name,
    Naming,
    Period,
    Principal,
    PublicKey,
    Threshold,
    unsafe_sign_certificate,
)

KEYS = tuple(signer.public_key for signer in SIGNERS[:6])
INDEX = {key.key_id: number for number, key in enumerate(KEYS)}
WORDS = ("a", "b")
WORLDS = 20_000 if LONG else 1_500
REQUEST: Sexp = (b"ftp", b"read", b"5")
TAGS: tuple[Sexp, ...] = (
    (b"*",),
    (b"ftp",),
    (b"ftp", b"read"),
    (b"ftp", (b"*", b"set", b"read", b"write"), (b"*", b"range", b"numeric", b"le", b"7")),
    (b"ftp", (b"*", b"prefix", b"re")),
    (b"ftp", b"write"),
    (b"ftp", b"read", b"6"),
)
PERIODS = (
    Period(),
    Period(),
    Period(NOW, None),
    Period(None, NOW),
    Period(NOW + timedelta(seconds=1), None),
    Period(None, NOW - timedelta(seconds=1)),
)


@dataclass(frozen=True)
class World:
    """A root, authorisations and names, all signed by whom they should be."""

    root: Root
    links: tuple[Authorisation, ...]
    namings: tuple[Naming, ...]

    def evidence(self) -> list[bytes]:
        """Sign everything."""
        return [unsafe_sign_certificate(body, SIGNERS[INDEX[body.issuer_id]]) for body in (*self.links, *self.namings)]


def key(rng: random.Random) -> PublicKey | KeyHash:
    """Draw a key, as itself or by its hash."""
    chosen = rng.choice(KEYS)
    return rng.choice((chosen, KeyHash(chosen.key_id)))


def principal(rng: random.Random, depth: int = 2) -> Principal:
    """Draw a key, a name, or a threshold of such, perhaps nested, perhaps with repeated members."""
    kind = rng.random()
    if depth and kind < 0.4:
        members = tuple(principal(rng, depth - 1) for _ in range(rng.randrange(1, 4)))
        return Threshold(rng.randrange(1, len(members) + 1), members)
    if kind < 0.55:
        return Name(key(rng), tuple(rng.choice(WORDS) for _ in range(rng.randrange(1, 3))))
    return key(rng)


def draw_world(rng: random.Random) -> World:
    """Draw a world in which about half of all questions are answered yes."""
    links = tuple(
        Authorisation(
            issuer=key(rng), subject=principal(rng), delegate=rng.random() < 0.75, tag=rng.choice(TAGS),
            period=rng.choice(PERIODS),
        )
        for _ in range(rng.randrange(1, 14))
    )  # fmt: skip
    namings = tuple(
        Naming(
            issuer=key(rng), name=rng.choice(WORDS), period=rng.choice(PERIODS),
            subject=rng.choice((key(rng), key(rng), Name(key(rng), (rng.choice(WORDS),)))),
        )
        for _ in range(rng.randrange(7))
    )  # fmt: skip
    return World(root(rng), links, namings)


def root(rng: random.Random) -> Root:
    """Draw a root, which may itself be a threshold or a name."""
    return Root(subject=principal(rng), delegate=rng.random() < 0.9)


# ---------------------------------------------------------------- the oracle


Meanings = Mapping[tuple[KeyId, str], set[KeyId]]


def meanings_of(namings: Sequence[Naming]) -> Meanings:
    """Apply every name certificate until no name gains a meaning."""
    found: dict[tuple[KeyId, str], set[KeyId]] = {}
    while True:
        before = sum(map(len, found.values()))
        for naming in namings:
            if naming.period.contains(NOW):
                found.setdefault((naming.issuer_id, naming.name), set()).update(keys_of(naming.subject, found))
        if sum(map(len, found.values())) == before:
            return found


def keys_of(subject: Principal, meanings: Meanings) -> set[KeyId]:
    """List the keys that a key, a hash or a name stands for."""
    if not isinstance(subject, Name):
        return {subject.key_id}
    keys = {subject.base.key_id}
    for part in subject.parts:
        keys = set().union(*(meanings.get((one, part), set()) for one in keys))
    return keys


def ways(subject: Principal, ready: set[KeyId], meanings: Meanings) -> set[frozenset[KeyId]]:
    """List the sets of distinct keys, all of them ready, with which a principal can act."""
    if not isinstance(subject, Threshold):
        return {frozenset({one}) for one in keys_of(subject, meanings) & ready}
    out: set[frozenset[KeyId]] = set()
    for chosen in itertools.combinations(subject.members, subject.k):
        for parts in itertools.product(*(ways(one, ready, meanings) for one in chosen)):
            union = frozenset().union(*parts)
            if len(union) == sum(map(len, parts)):
                out.add(union)
    return out


def holds(world: World, who: KeyId) -> bool:
    """Tell whether the right reaches a key, by adding keys that pass it on until none is left to add."""
    meanings = meanings_of(world.namings)
    passing: set[KeyId] = set()
    useful = [link for link in world.links if link.period.contains(NOW) and member(link.tag, REQUEST)]
    while True:
        gained = {
            link.issuer_id
            for link in useful
            if ways(link.subject, {who} | (passing if link.delegate else set()), meanings)
        }
        if gained <= passing:
            break
        passing |= gained
    return bool(ways(world.root.subject, {who} | (passing if world.root.delegate else set()), meanings))


def has_joined(tree: ProofTree | None) -> bool:
    """Tell whether a proof joins the branches of a threshold."""
    while isinstance(tree, Held):
        tree = tree.then
    return tree is not None


# ---------------------------------------------------------------- the laws


def test_random_worlds_are_decided_as_the_oracle_does() -> None:
    """Thousands of questions over random graphs with thresholds, names, hashes, periods and tags."""
    rng = random.Random(8)
    allowed = total = joined = 0
    for _ in range(WORLDS):
        world = draw_world(rng)
        verifier = Verifier([world.root])
        evidence = world.evidence()
        for who in rng.sample(KEYS, 3):
            decision = verifier.decide(ask(REQUEST), principal=who, evidence=evidence, at=NOW)
            assert bool(decision) is holds(world, who.key_id), (world, who)
            allowed, total = allowed + bool(decision), total + 1
            joined += bool(decision) and has_joined(decision.grant.proof.tree)
    assert 0.15 < allowed / total < 0.85
    assert joined > WORLDS // 50, "proofs that join thresholds must be among the draw"


@given(randoms)
def test_order_and_repetition_of_evidence_are_irrelevant(rng: random.Random) -> None:
    """Shuffled and doubled evidence gives the same answer, reason, stage and proof."""
    world = draw_world(rng)
    who = rng.choice(KEYS)
    evidence = world.evidence()
    first = Verifier([world.root]).decide(ask(REQUEST), principal=who, evidence=evidence, at=NOW)
    for _ in range(3):
        shuffled = rng.sample(evidence, len(evidence)) + evidence[: rng.randrange(3)]
        again = Verifier([world.root]).decide(ask(REQUEST), principal=who, evidence=shuffled, at=NOW)
        assert (again.allowed, again.reason, again.stage) == (first.allowed, first.reason, first.stage)
        if first.grant and again.grant:
            assert set(again.grant.proof.certificate_ids()) == set(first.grant.proof.certificate_ids())


@given(randoms)
def test_a_warm_verifier_answers_as_a_cold_one(rng: random.Random) -> None:
    """Caches of signatures, pools and grants change no answer, at any later or earlier instant."""
    world = draw_world(rng)
    evidence = world.evidence()
    warm = Verifier([world.root])
    questions = [
        (
            rng.choice(KEYS),
            NOW + timedelta(seconds=rng.randrange(-2, 3)),
            rng.sample(evidence, rng.randrange(1, len(evidence) + 1)),
        )
        for _ in range(4)
    ]
    for who, at, shown in [*questions, *questions, *reversed(questions)]:
        cold = Verifier([world.root]).decide(ask(REQUEST), principal=who, evidence=shown, at=at)
        found = warm.decide(ask(REQUEST), principal=who, evidence=shown, at=at)
        assert (found.allowed, found.reason, found.stage) == (cold.allowed, cold.reason, cold.stage)


@given(randoms)
def test_a_proof_replays_from_its_own_certificates(rng: random.Random) -> None:
    """A third party needs nothing but the certificates of the proof, and none of them is superfluous."""
    world = draw_world(rng)
    who = rng.choice(KEYS)
    decision = Verifier([world.root]).decide(ask(REQUEST), principal=who, evidence=world.evidence(), at=NOW)
    if not decision.grant:
        return
    proof = [certificate.raw for certificate in decision.grant.certificates]
    assert Verifier([world.root]).decide(ask(REQUEST), principal=who, evidence=proof, at=NOW)


@given(randoms)
def test_more_evidence_never_takes_a_right_away(rng: random.Random) -> None:
    """Adding certificates, forged ones included, never turns a yes into a no; what was no may become yes."""
    world = draw_world(rng)
    who = rng.choice(KEYS)
    evidence = world.evidence()
    part = rng.sample(evidence, rng.randrange(len(evidence) + 1))
    forged = [raw[:-3] + bytes([raw[-3] ^ 1]) + raw[-2:] for raw in evidence[:2]]
    verifier = Verifier([world.root])
    some = verifier.decide(ask(REQUEST), principal=who, evidence=part, at=NOW)
    every = verifier.decide(ask(REQUEST), principal=who, evidence=[*forged, *evidence], at=NOW)
    assert every or not some
    assert bool(every) is holds(world, who.key_id)


@given(randoms)
def test_forged_certificates_prove_nothing(rng: random.Random) -> None:
    """With some signatures broken, the answer is that of the world without those certificates."""
    world = draw_world(rng)
    who = rng.choice(KEYS)
    evidence = world.evidence()
    broken = {number for number in range(len(evidence)) if rng.random() < 0.4}
    shown = [raw[:-3] + bytes([raw[-3] ^ 1]) + raw[-2:] if i in broken else raw for i, raw in enumerate(evidence)]
    links = tuple(link for i, link in enumerate(world.links) if i not in broken)
    namings = tuple(naming for i, naming in enumerate(world.namings) if i + len(world.links) not in broken)
    # An equal body with a good signature is the same certificate and keeps counting.
    decision = Verifier([world.root]).decide(ask(REQUEST), principal=who, evidence=shown, at=NOW)
    assert bool(decision) is holds(World(world.root, links, namings), who.key_id)


def test_the_oracle_counts_distinct_keys() -> None:
    """The oracle itself: one key under a name, a hash and its own form meets one slot; two keys meet two."""
    name = Name(KEYS[0], ("a",))
    meanings = {(KEYS[0].key_id, "a"): {KEYS[1].key_id}}
    same = Threshold(2, (KEYS[1], KeyHash(KEYS[1].key_id), name))
    ready = {KEYS[1].key_id, KEYS[2].key_id}
    assert ways(same, ready, meanings) == set()
    assert ways(Threshold(2, (*same.members, KEYS[2])), ready, meanings) == {frozenset(ready)}
