"""Names against clingo: the meanings of names are the least model of a Datalog program.

``K: n -> S`` becomes ``val(K,n,X) :- …``; a linked name joins part by part. The graphs have cycles, self-references,
linked names, several meanings, and keys that appear as themselves and by their hashes.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import clingo
from hypothesis import given
from strategies_trust import LONG, NOW, SIGNERS, randoms

from maia.authority import (
    Budget,
    CertificatePool,
    NameClosure,
    NameNode,
    Root,
    Verifier,
    VerifierLimits,
    ask,
    describe_node,
)
from maia.errors import UncheckedError
from maia.principals import Authorisation, KeyHash, KeyId, Name, Naming, issue, unsafe_sign_certificate

KEYS = tuple(signer.public_key for signer in SIGNERS[:5])
WORDS = ("a", "b", "c")
GRAPHS = 100_000 if LONG else 1_000

Meaning = tuple[int, str, int, tuple[str, ...]]
"""Issuer, name, base of the subject, parts of the subject (none: the base itself)."""


def random_meanings(rng: random.Random) -> list[Meaning]:
    """Draw a small graph of names, dense enough to have cycles."""
    keys = rng.randrange(1, len(KEYS) + 1)
    return [
        (
            rng.randrange(keys),
            rng.choice(WORDS),
            rng.randrange(keys),
            tuple(rng.choice(WORDS) for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))),
        )
        for _ in range(rng.randrange(1, 14))
    ]


def certificates(rng: random.Random, meanings: Sequence[Meaning]) -> list[bytes]:
    """Sign the graph, each key now as itself and now by its hash."""
    out = []
    for issuer, name, base, parts in meanings:
        named, signer = (rng.choice((KEYS[i], KeyHash(KEYS[i].key_id))) for i in (base, issuer))
        subject = Name(named, parts) if parts else named
        out.append(unsafe_sign_certificate(Naming(issuer=signer, name=name, subject=subject), SIGNERS[issuer]))
    return out


def solve(meanings: Sequence[Meaning], questions: Sequence[tuple[int, tuple[str, ...]]]) -> list[set[int]]:
    """Let clingo compute the keys of each question."""
    rules = []
    for issuer, name, base, parts in meanings:
        last, body = follow(base, parts)
        rules.append(f"val({issuer},{name},{last}) :- {body}.")
    for number, (base, parts) in enumerate(questions):
        last, body = follow(base, parts)
        rules.append(f"answer({number},{last}) :- {body}.")
    control = clingo.Control(["--warn=none"])
    control.add("base", [], "\n".join(rules))
    control.ground([("base", [])])
    found: dict[int, set[int]] = defaultdict(set)

    def read(model: clingo.Model) -> None:
        for atom in model.symbols(atoms=True):
            if atom.name == "answer":
                found[atom.arguments[0].number].add(atom.arguments[1].number)

    control.solve(on_model=read)
    return [found[number] for number in range(len(questions))]


def follow(base: int, parts: tuple[str, ...]) -> tuple[str, str]:
    """Write a name as a join: its last variable, and the body of the rule."""
    at, body = str(base), []
    for number, part in enumerate(parts):
        body.append(f"val({at},{part},X{number})")
        at = f"X{number}"
    return at, ", ".join(body) or "1 = 1"


QUESTIONS = [(key, (word,)) for key in range(len(KEYS)) for word in WORDS] + [
    (key, (first, second)) for key in range(len(KEYS)) for first in WORDS for second in WORDS
]


def resolve(
    pool: CertificatePool, question: tuple[int, tuple[str, ...]], closure: NameClosure | None = None
) -> set[int]:
    """Ask the code under test."""
    closure = closure or NameClosure(pool.namings, Budget(steps=10**6, signatures=1))
    index = {key.key_id: number for number, key in enumerate(KEYS)}
    return {index[key] for key in closure.resolve(NameNode(KEYS[question[0]].key_id, question[1]))}


def test_random_name_graphs_mean_what_clingo_says() -> None:
    """Every local name and every linked name of two parts, over hundreds of graphs, asked in random order."""
    rng = random.Random(4)
    resolved = 0
    for _ in range(GRAPHS):
        meanings = random_meanings(rng)
        pool = CertificatePool(certificates(rng, meanings))
        wanted = solve(meanings, QUESTIONS)
        closure = NameClosure(pool.namings, Budget(steps=10**6, signatures=1))
        for number in rng.sample(range(len(QUESTIONS)), len(QUESTIONS)):
            found = resolve(pool, QUESTIONS[number], closure)
            assert found == wanted[number], (meanings, QUESTIONS[number])
            resolved += bool(found)
    assert resolved > GRAPHS


@given(randoms)
def test_a_name_alone_means_what_it_means_among_others(rng: random.Random) -> None:
    """Asking for one name on its own, or after all others, gives the same keys: laziness loses nothing."""
    meanings = random_meanings(rng)
    pool = CertificatePool(certificates(rng, meanings))
    shared = NameClosure(pool.namings, Budget(steps=10**6, signatures=1))
    question = rng.choice(QUESTIONS)
    alone = resolve(pool, question)
    for other in QUESTIONS:
        resolve(pool, other, shared)
    assert resolve(pool, question, shared) == alone


@given(randoms)
def test_the_support_of_a_meaning_is_enough_for_it(rng: random.Random) -> None:
    """The certificates given as the reason for a meaning give it without any other certificate."""
    meanings = random_meanings(rng)
    pool = CertificatePool(certificates(rng, meanings))
    closure = NameClosure(pool.namings, Budget(steps=10**6, signatures=1))
    base, parts = rng.choice(QUESTIONS)
    name = NameNode(KEYS[base].key_id, parts)
    for key in closure.resolve(name):
        reasons = closure.support(name, key)
        alone = CertificatePool(pool.get(naming.source) for naming in reasons)
        assert key in NameClosure(alone.namings, Budget(steps=10**6, signatures=1)).resolve(name), describe_node(name)


@given(randoms)
def test_the_order_of_name_certificates_is_irrelevant(rng: random.Random) -> None:
    """Shuffled and doubled certificates mean the same."""
    meanings = random_meanings(rng)
    raws = certificates(rng, meanings)
    shuffled = rng.sample(raws, len(raws)) + raws[: rng.randrange(3)]
    for question in QUESTIONS[:20]:
        assert resolve(CertificatePool(raws), question) == resolve(CertificatePool(shuffled), question)


@given(randoms)
def test_a_closure_out_of_steps_is_unchecked(rng: random.Random) -> None:
    """With too few steps the answer is an error, never a smaller set."""
    meanings = random_meanings(rng)
    pool = CertificatePool(certificates(rng, meanings))
    base, parts = rng.choice(QUESTIONS)
    steps = rng.randrange(1, 12)
    try:
        found = NameClosure(pool.namings, Budget(steps=steps, signatures=1)).resolve(NameNode(KEYS[base].key_id, parts))
    except UncheckedError:
        return
    assert found == NameClosure(pool.namings, Budget(steps=10**6, signatures=1)).resolve(
        NameNode(KEYS[base].key_id, parts)
    )


def test_doubling_names_stay_linear() -> None:
    """``a_i -> a_(i+1) a_(i+1)`` over a loop is harmless to a closure, though rewriting would never end."""
    words = [f"n{i}" for i in range(40)]
    first = SIGNERS[0]
    raws = [
        issue(Naming(issuer=KEYS[0], name=word, subject=Name(KEYS[0], (after, after))), first).raw
        for word, after in pairwise(words)
    ]
    raws.append(issue(Naming(issuer=KEYS[0], name=words[-1], subject=KEYS[0]), first).raw)
    pool = CertificatePool(raws)
    closure = NameClosure(pool.namings, Budget(steps=400, signatures=1))
    assert closure.resolve(NameNode(KEYS[0].key_id, (words[0],))) == {KEYS[0].key_id}


def test_a_thousand_names_are_within_the_limits() -> None:
    """A chain of a thousand names resolves under the default limits, and is denied under small ones."""
    count = 1000
    namings = [
        issue(Naming(issuer=KEYS[0], name=f"n{i}", subject=Name(KEYS[0], (f"n{i + 1}",))), SIGNERS[0]).raw
        for i in range(count)
    ]
    namings.append(issue(Naming(issuer=KEYS[0], name=f"n{count}", subject=KEYS[1]), SIGNERS[0]).raw)
    grant = issue(
        Authorisation(issuer=KEYS[0], subject=Name(KEYS[0], ("n0",)), delegate=False, tag=(b"*",)), SIGNERS[0]
    )
    evidence, wish = [*namings, grant.raw], ask((b"a",))
    root = Root(subject=KEYS[0])
    assert Verifier([root]).decide(wish, principal=KEYS[1], evidence=evidence, at=NOW)
    tight = Verifier([root], limits=VerifierLimits(max_steps=count, octets_per_step=1 << 20)).decide(
        wish, principal=KEYS[1], evidence=evidence, at=NOW
    )
    assert tight.reason == "LIMIT_EXCEEDED"


def test_key_ids_are_not_questions() -> None:
    """The inner mark of a question cannot be a key identity, so no certificate can answer for it."""
    assert all(len(key.key_id) == 32 and key.key_id != KeyId(b"?") for key in KEYS)


def test_a_forged_name_certificate_behind_a_doubled_name_proves_nothing() -> None:
    """One certificate can give two facts, each resting on others: every certificate behind either must be signed."""
    owner, zoe, mallory = KEYS[0], KEYS[1], SIGNERS[4]
    bodies = {
        "n -> a": Naming(issuer=owner, name="n", subject=Name(owner, ("a",))),
        "a -> owner": Naming(issuer=owner, name="a", subject=owner),
        "a -> zoe": Naming(issuer=owner, name="a", subject=zoe),
    }
    right = Authorisation(issuer=owner, subject=Name(owner, ("n", "n")), delegate=False, tag=(b"*",))
    signed = {what: issue(body, SIGNERS[0]).raw for what, body in bodies.items()}
    evidence = {**signed, "right": issue(right, SIGNERS[0]).raw}
    wish, root = ask((b"a",)), Root(subject=owner)
    grant = Verifier([root]).verify(wish, principal=zoe, evidence=evidence.values(), at=NOW)
    assert {certificate.raw for certificate in grant.certificates} == set(evidence.values())
    for forged, body in bodies.items():
        shown = {**evidence, forged: unsafe_sign_certificate(body, mallory)}
        decision = Verifier([root]).decide(wish, principal=zoe, evidence=shown.values(), at=NOW)
        assert not decision, forged
