"""Evidence that is meant to cost its reader much: what a hostile holder, a stranger and a forger can put into it.

`costly_evidence` builds one pile of certificates; `worst_evidence` looks for the pile that costs most. Both are seeded,
so that what was found once can be measured again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from itertools import count
from random import Random

from maia.authority import Action, Budget, CertificatePool, Verifier, VerifierLimits, ask_type
from maia.encoding import Sexp
from maia.errors import MaiaError, UncheckedError
from maia.principals import (
    Authorisation,
    KeySigner,
    Name,
    Naming,
    Principal,
    PublicKey,
    Signer,
    Subject,
    Threshold,
    principal_id,
    unsafe_seal_certificate,
    unsafe_sign_certificate,
)


class Standing(Enum):
    """Whose evidence it is."""

    HOLDER = "holder"
    """Signed by keys that a root gave a delegable right."""
    STRANGER = "stranger"
    """Signed, but by keys that no root leads to."""
    FORGER = "forger"
    """Written in the names of others; no signature verifies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pile:
    """What a pile of evidence is made of.

    Attributes:
        family: Its shape, one of `FAMILIES`.
        standing: Whose it is.
        octets: How much of it there is, at most.
        width: How many of a kind stand side by side.
        depth: How many stand one behind the other.
        seed: What the rest is drawn from.
    """

    family: str
    standing: Standing
    octets: int = 64 << 10
    width: int = 8
    depth: int = 4
    seed: int = 0


@dataclass(slots=True)
class _Writer:
    """Writes certificates until the pile is full."""

    pile: Pile
    owner: Signer
    principal: Principal
    type_name: str
    random: Random
    items: list[bytes] = field(default_factory=list)
    left: int = 0
    _numbers: Iterator[int] = field(default_factory=count)

    def key(self) -> KeySigner:
        return KeySigner(self.random.randbytes(32))

    def tag(self, *uids: Sexp) -> Sexp:
        owner = principal_id(self.owner.public_key)
        head: tuple[Sexp, ...] = (b"maia-type", owner, self.type_name.encode(), (b"*",), b"subscribe")
        return (*head, (b"*", b"set", *uids)) if uids else head

    def link(
        self, issuer: Signer, subject: Subject, tag: Sexp | None = None, *, last: bool = False, conditions: int = 0
    ) -> bool:
        return self._write(
            Authorisation(
                issuer=issuer.public_key, subject=subject, delegate=not last,
                tag=self.tag() if tag is None else tag,
                conditions=tuple(self._condition() for _ in range(conditions)),
            ),
            issuer,
        )  # fmt: skip

    def name(self, issuer: Signer, name: str, subject: Principal) -> bool:
        return self._write(Naming(issuer=issuer.public_key, name=name, subject=subject), issuer)

    def _condition(self) -> str:
        terms = " || ".join(f"principal == '{next(self._numbers)}'" for _ in range(self.pile.width))
        return f"({terms}) || true"

    def _write(self, body: Authorisation | Naming, issuer: Signer) -> bool:
        if self.pile.standing is Standing.FORGER:
            raw = unsafe_seal_certificate(body.to_sexp(), issuer.public_key, self.random.randbytes(64))
        else:
            raw = unsafe_sign_certificate(body, issuer)
        self.left -= len(raw)
        if self.left < 0:
            return False
        self.items.append(raw)
        return True


def costly_evidence(
    pile: Pile, *, owner: Signer, principal: PublicKey, type_name: str, first: Signer | None = None
) -> list[bytes]:
    """Build a pile of evidence for a right to subscribe to a type.

    Args:
        pile: What it is made of.
        owner: Owns the type. For a holder's pile its key signs the first link; a forger only needs its public half.
        principal: Who the evidence speaks of.
        type_name: The type.
        first: Who was given the right that a holder passes on; without one a key that the pile draws.
    """
    writer = _Writer(pile, owner, principal, type_name, Random(pile.seed), left=pile.octets)  # noqa: S311 - repeatable
    top: Signer = owner
    if pile.standing is Standing.STRANGER:
        top = writer.key()
    elif first is not None:
        top = first
    elif pile.standing is Standing.HOLDER:
        top = writer.key()
        writer.link(owner, top.public_key)
    FAMILIES[pile.family](writer, top)
    return writer.items


def _thresholds(w: _Writer, top: Signer) -> None:
    """Thresholds whose members are names of the same few keys, so that choosing distinct ones is a puzzle."""
    keys = [w.key() for _ in range(max(2, w.pile.width))]
    names = [f"n{n}" for n in range(max(3, w.pile.width + 1))]
    for name in names:
        for key in keys:
            w.name(top, name, key.public_key)
    for key in keys:
        w.link(key, w.principal, last=True)
    while True:
        leaves: list[Principal] = [Name(top.public_key, (name,)) for name in w.random.sample(names, len(names))]
        node: Principal = Threshold(len(leaves), tuple(leaves[:60]))
        for _ in range(min(w.pile.depth, 6) - 1):
            node = Threshold(1, (node, keys[0].public_key)) if w.random.random() < 0.5 else Threshold(1, (node,))
        if not w.link(top, node):
            return


def _doubling(w: _Writer, top: Signer) -> None:
    """Names that stand for two of the next, which mean many keys at every step."""
    here = top.public_key
    depth = max(2, w.pile.depth)
    for key in (w.key() for _ in range(w.pile.width)):
        for n in range(depth + 1):
            w.name(key, f"n{n}", w.principal)
            w.name(key, f"n{n}", here)
        w.name(top, f"n{depth}", key.public_key)
    for n in range(depth):
        w.name(top, f"n{n}", Name(here, (f"n{n + 1}",) * min(w.pile.width, 16)))
    while w.link(top, Name(here, (f"n{w.random.randrange(depth)}",) * w.random.randint(1, 16))):
        continue


def _groups(w: _Writer, top: Signer) -> None:
    """Many links to names with many members who pass on what they get."""
    keys = [w.key() for _ in range(w.pile.width)]
    for key in keys:
        w.name(top, "g", key.public_key)
        w.link(key, w.principal, last=True)
    while all(w.link(key, Name(top.public_key, ("g",))) for key in (top, *keys)):
        continue


def _diamonds(w: _Writer, top: Signer) -> None:
    """Layers of keys, each passing on to all of the next: as many chains as there are ways through."""
    layer: list[Signer] = [top]
    while True:
        following: list[Signer] = [w.key() for _ in range(w.pile.width)]
        for issuer in layer:
            for subject in following:
                if not w.link(issuer, subject.public_key) or not w.link(subject, w.principal, last=True):
                    return
        layer = following


def _loops(w: _Writer, top: Signer) -> None:
    """Keys that give rights to themselves, to each other and to the principal."""
    keys: list[Signer] = [top, *(w.key() for _ in range(max(1, w.pile.width)))]
    while True:
        issuer, subject = w.random.choice(keys), w.random.choice(keys)
        goal = w.principal if w.random.random() < 0.3 else subject.public_key
        if not w.link(issuer, goal, conditions=w.random.randrange(2)):
            return


def _sets(w: _Writer, top: Signer) -> None:
    """Two links with sets of patterns that all have to meet."""
    middle = w.key()
    patterns: list[Sexp] = [(b"*", b"glob", b"*%d*%d" % (n, w.random.randrange(9))) for n in range(8 * w.pile.width)]
    while w.link(top, middle.public_key, w.tag(*patterns)) and w.link(middle, w.principal, w.tag(*patterns), last=True):
        w.random.shuffle(patterns)


def _alternatives(w: _Writer, top: Signer) -> None:
    """Sets of 1,001 plain alternatives."""
    while w.link(top, w.principal, w.tag(*(b"%d" % w.random.randrange(10**6) for _ in range(1001)))):
        continue


def _written(w: _Writer, top: Signer) -> None:
    """Intersections that are written down, so that reading has to find out whether they are empty."""
    while True:
        side = min(8, w.pile.width)
        globs = [(b"*", b"glob", b"*".join(w.random.randbytes(w.pile.depth) for _ in range(6))) for _ in range(side)]
        low = [b"ab" * 4 * w.pile.depth + bytes((n,)) for n in range(side)]
        ranges = [(b"*", b"range", b"alpha", b"ge", text, b"le", text + b"\xff" * 8) for text in low]
        both: Sexp = (b"*", b"and", (b"*", b"set", *globs), (b"*", b"set", *ranges))
        if not w.link(top, w.principal, w.tag(both)):
            return


def _nested(w: _Writer, top: Signer) -> None:
    """Lists and sets, one inside the other, as deep as certificates allow."""
    while True:
        inner: Sexp = b"x"
        for _ in range(min(50, 4 * w.pile.depth)):
            inner = (b"*", b"set", (b"a", inner), *(b"%d" % w.random.randrange(999) for _ in range(w.pile.width)))
        if not w.link(top, w.principal, w.tag(inner)):
            return


def _conditions(w: _Writer, top: Signer) -> None:
    """Long conditions on every link of long chains."""
    issuer = top
    while True:
        subject = w.key()
        if not w.link(issuer, subject.public_key, conditions=8) or not w.link(subject, w.principal, last=True):
            return
        issuer = subject


def _rows(w: _Writer, top: Signer) -> None:
    """Constraints on many attributes in every link."""
    issuer = top
    while True:
        subject = w.key()
        cells = ((b"%d" % n, (b"*", b"glob", b"*%d*" % w.random.randrange(99))) for n in range(w.pile.width))
        tag = (*w.tag(), (b"*",), (b"*", b"where", *cells))  # type: ignore[misc] # a list, as `tag` makes it
        if not w.link(issuer, subject.public_key, tag) or not w.link(subject, w.principal, tag, last=True):
            return
        issuer = subject if w.random.random() < 1 / w.pile.depth else issuer


def _spoken(w: _Writer, top: Signer) -> None:
    """Rights on many patterns of attributes, passed on with demands on many attributes."""
    while True:
        middle = w.key()
        uids = (b"*", b"set", *((b"*", b"glob", b"a%d*b" % n) for n in range(8 * w.pile.width)))
        rows = (b"*", b"where", *((b"%d" % n, b"x") for n in range(8 * w.pile.depth)))
        tag = (*w.tag(), uids)  # type: ignore[misc] # a list, as `tag` makes it
        told = (*w.tag(), (b"*",), rows)  # type: ignore[misc] # as above
        if not w.link(top, middle.public_key, tag) or not w.link(middle, w.principal, told, last=True):
            return


FAMILIES: dict[str, Callable[[_Writer, Signer], None]] = {
    "alternatives": _alternatives,
    "conditions": _conditions,
    "diamonds": _diamonds,
    "doubling names": _doubling,
    "groups": _groups,
    "loops": _loops,
    "nested tags": _nested,
    "rows": _rows,
    "sets of patterns": _sets,
    "speech": _spoken,
    "thresholds": _thresholds,
    "written intersections": _written,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a pile cost.

    Attributes:
        pile: What was read.
        steps: Steps of all that was asked.
        signatures: Signatures that were checked.
        answer: The code of the denial, or ``granted``.
    """

    pile: Pile
    steps: int
    signatures: int
    answer: str


def cost_of(pile: Pile, *, at: datetime, limits: VerifierLimits | None = None) -> Cost:
    """Read a pile cold, decide on it and list its clauses; tell what that took."""
    owner, who = KeySigner(bytes(31) + b"o"), KeySigner(bytes(31) + b"p").public_key
    evidence = costly_evidence(pile, owner=owner, principal=who, type_name="T")
    return decide_costly(pile, evidence, owner=owner.public_key, who=who, at=at, limits=limits or VerifierLimits())


def decide_costly(
    pile: Pile, evidence: list[bytes], *, owner: PublicKey, who: PublicKey, at: datetime, limits: VerifierLimits
) -> Cost:
    """Ask for the right and for its clauses, in one decision."""
    pool = CertificatePool(evidence, limits=limits)
    verifier = Verifier(limits=limits)
    budget: Budget = verifier.budget(pool)
    request = ask_type(Action.SUBSCRIBE, owner, "T", "1")
    decision = verifier.decide(request, principal=who, evidence=pool, at=at, budget=budget)
    answer = decision.reason or "granted"
    try:
        verifier.clauses(request, principal=who, evidence=pool, at=at, budget=budget)
    except UncheckedError as error:
        answer = error.code
    return Cost(pile=pile, steps=budget.used, signatures=verifier.signatures.verifications, answer=answer)


def worst_evidence(
    measure: Callable[[Pile], float], *, standing: Standing, octets: int, rounds: int, seed: int
) -> dict[str, Pile]:
    """Climb, in each family, from pile to pile as long as they cost more; return the dearest of each."""
    random = Random(seed)  # noqa: S311 - repeatable, not secret
    found: dict[str, Pile] = {}
    for family in FAMILIES:
        best = Pile(family=family, standing=standing, octets=octets, seed=seed)
        price = measure(best)
        for _ in range(rounds):
            other = replace(
                best,
                width=max(1, min(64, best.width + random.choice((-7, -2, -1, 1, 2, 7, best.width)))),
                depth=max(1, min(64, best.depth + random.choice((-2, -1, 1, 2, best.depth)))),
                seed=random.randrange(1 << 30),
            )
            try:
                cost = measure(other)
            except MaiaError:  # a shape that certificates do not have
                continue
            if cost > price:
                best, price = other, cost
        found[family] = best
    return found
