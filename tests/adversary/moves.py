"""What an attacker tries: a small world in plain words, and random sequences of moves in it.

The cast. Honest: ``o`` owns the type; ``s`` is a domain that publishes (broker ``sb``, client ``camera``); ``m`` is a
domain that serves readers (broker ``mb``, client ``reader``); ``a`` is a department that hands rights on. The coalition:
``h`` and ``g`` are clients of ``m``, ``w`` is a client of ``s``, ``x`` speaks for a domain of its own with the broker
``xb``, and ``p`` owns a type of the same name. All keys of the coalition, and all that they hold, are the attacker's; it
can write anywhere in the shared log.

A sequence is drawn from a seed and is data: any part of its moves can be left out, which is how a failing one is made
small. Nothing of Maia is imported here.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

UIDS = ("1", "2", "3")
VALUES = (0, 1, 2)
HONEST = ("o", "s", "m", "a", "sb", "mb", "camera", "reader")
COALITION = ("h", "g", "w", "x", "xb", "p")
READERS = ("h", "g")
ACTIONS = (("subscribe",), ("publish",), ("publish", "subscribe"))
USUAL = {"h": ACTIONS[0], "g": ACTIONS[0], "w": ACTIONS[1], "xb": ACTIONS[1]}
PUBLISH, SUBSCRIBE = "publish", "subscribe"

Row = tuple[int | None, ...]
"""The values of an event, in the order of `UIDS`."""


@dataclass(frozen=True)
class Option:
    """One alternative of a right: what is done, to which attributes, in which rows."""

    actions: tuple[str, ...]
    uids: tuple[str, ...]
    demands: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class Link:
    """A certificate: who gives what to whom, with what it demands of the moment and of lists."""

    issuer: str
    subject: str
    delegate: bool
    options: tuple[Option, ...]
    conditions: tuple[tuple[str, int], ...] = ()
    until: int | None = None
    listed: bool = False


@dataclass(frozen=True)
class Naming:
    """A name certificate: ``issuer`` calls ``subject`` one of its brokers or domains."""

    issuer: str
    name: str
    subject: str


# ---------------------------------------------------------------- moves


@dataclass(frozen=True)
class Move:
    """Something that happens; time passes by a second with each."""


@dataclass(frozen=True)
class Issue(Move):
    """The coalition issues itself a right, which may claim anything."""

    link: Link


@dataclass(frozen=True)
class Forge(Move):
    """The coalition makes a certificate in the name of somebody honest."""

    link: Link


@dataclass(frozen=True)
class Call(Move):
    """The coalition calls one of its keys a broker or a domain."""

    naming: Naming


@dataclass(frozen=True)
class Publish(Move):
    """The camera publishes, or a client of the coalition does, through the honest broker ``sb``."""

    who: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Repeat(Move):
    """An honest publication is tried again under its name, as after a crash."""

    which: int


@dataclass(frozen=True)
class Commit(Move):
    """The coalition's broker commits to its own lane what it likes, in a way that ``how`` names."""

    how: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Tamper(Move):
    """The coalition writes to the shared log, in a way that ``how`` names."""

    how: str
    target: int


@dataclass(frozen=True)
class Restore(Move):
    """Owners assert their lanes again, and what else was destroyed comes back from a copy."""


@dataclass(frozen=True)
class Subscribe(Move):
    """A client of the coalition reads the whole log through the honest broker ``mb``."""

    who: str
    where: tuple[str, int] | None


@dataclass(frozen=True)
class Follow(Move):
    """The honest reader takes the next stretch of its stream."""


@dataclass(frozen=True)
class Join(Move):
    """A key of the coalition asks for the keys of the attributes."""

    who: str


@dataclass(frozen=True)
class Revoke(Move):
    """The owner withdraws one of the rights that lists can end."""

    which: int


@dataclass(frozen=True)
class Pass(Move):
    """Time passes, and the owner keeps up its lists."""

    seconds: int


@dataclass(frozen=True)
class Prove(Move):
    """The coalition wants to be taken for somebody whose key it does not have."""

    how: str


COMMITS = ("own", "own", "own", "beyond", "ahead", "backdate", "twice", "replay", "fork", "other-type", "borrowed")
TAMPERS = (
    "junk-record", "junk-head", "old-head", "foreign-record", "replayed-record", "far-record", "stranger-lane",
    "no-head", "no-record", "no-segment", "no-evidence", "flip-record", "flip-segment", "swap-segments",
    "cut-segment", "directory", "fifo", "endless", "old-notice", "no-notice", "junk-notice",
)  # fmt: skip
PROOFS = ("wrong-key", "replay", "other-audience", "broker", "renamed")


@dataclass(frozen=True)
class Sequence:
    """One attack.

    Attributes:
        seed: What it was drawn from.
        given: What honest parties gave, to the coalition and to ``a``.
        domain: Whether the owner calls ``x`` one of its domains.
        moves: What happens, in this order.
    """

    seed: int
    given: tuple[Link, ...]
    domain: bool
    moves: tuple[Move, ...]

    def __str__(self) -> str:
        """Write it down for whoever looks into a failure."""
        lines = [f"seed {self.seed}, x is {'a' if self.domain else 'no'} domain"]
        lines += [f"  given  {item}" for item in self.given]
        return "\n".join([*lines, *(f"  {number:2}  {move}" for number, move in enumerate(self.moves))])

    def without(self, *, move: int | None = None, link: int | None = None) -> Sequence:
        """Leave out one move, or one right."""
        if move is not None:
            return replace(self, moves=self.moves[:move] + self.moves[move + 1 :])
        assert link is not None
        return replace(self, given=self.given[:link] + self.given[link + 1 :])


# ---------------------------------------------------------------- drawing


def draw(seed: int) -> Sequence:
    """Draw an attack."""
    rng = random.Random(seed)
    given = [_given(rng) for _ in range(rng.randint(0, 3))]
    for subject, often in (("h", 0.6), ("w", 0.3), ("x", 0.3)):
        if rng.random() < often:
            given.append(replace(_given(rng), issuer="o", subject=subject, delegate=True))
    moves = [_move(rng) for _ in range(rng.randint(3, 8))]
    if not any(isinstance(move, Publish) for move in moves):
        moves.insert(0, Publish("camera", _rows(rng)))
    return Sequence(seed, tuple(given), rng.random() < 0.6, tuple(moves))


def _move(rng: random.Random) -> Move:
    kind = rng.choices(
        (Issue, Forge, Call, Publish, Repeat, Commit, Tamper, Restore, Subscribe, Follow, Join, Revoke, Pass, Prove),
        (14, 3, 3, 10, 2, 10, 16, 2, 16, 6, 5, 5, 4, 2),
    )[0]
    match kind.__name__:
        case "Issue":
            return Issue(_own(rng))
        case "Forge":
            return Forge(replace(_own(rng), issuer=rng.choice(("o", "a", "m", "s"))))
        case "Call":
            issuer, subject = rng.choice(("h", "g", "x", "w")), rng.choice(("xb", "xb", "h", "g", "x", "w"))
            return Call(Naming(issuer, rng.choice(("brokers", "brokers", "domains")), subject))
        case "Publish":
            return Publish(rng.choice(("camera", "camera", "w")), _rows(rng))
        case "Repeat":
            return Repeat(rng.randrange(8))
        case "Commit":
            return Commit(rng.choice(COMMITS), _rows(rng))
        case "Tamper":
            return Tamper(rng.choice(TAMPERS), rng.randrange(64))
        case "Subscribe":
            where = None if rng.random() < 0.6 else (rng.choice(UIDS), rng.choice(VALUES))
            return Subscribe(rng.choice(READERS), where)
        case "Join":
            return Join(rng.choice(("xb", "xb", "h", "g", "w", "x")))
        case "Revoke":
            return Revoke(rng.randrange(8))
        case "Pass":
            return Pass(rng.choice((2, 20, 45, 70, 90, 200)))
        case "Prove":
            return Prove(rng.choice(PROOFS))
        case _:
            return kind()


def _given(rng: random.Random) -> Link:
    issuer = rng.choice(("o", "o", "o", "a", "m", "s"))
    subject = rng.choice(("h", "h", "g", "w", "w", "x", "x", "xb", "a") if issuer == "o" else ("h", "g", "w", "x", "xb"))
    link = _link(rng, issuer, subject, delegate=rng.random() < 0.7)
    return replace(
        link,
        until=rng.choice((None, None, None, 10, 60)),
        listed=issuer in ("o", "a") and rng.random() < 0.5,
    )


def _own(rng: random.Random) -> Link:
    issuer = rng.choice(("h", "h", "h", "g", "w", "w", "x", "x"))
    subject = rng.choice(("g", "g", "g", "h", "w", "w", "x", "xb"))
    return _link(rng, issuer, subject, delegate=rng.random() < 0.7)


def _link(rng: random.Random, issuer: str, subject: str, *, delegate: bool) -> Link:
    options = tuple(_option(rng, subject) for _ in range(rng.choice((1, 1, 1, 2))))
    conditions = tuple((rng.choice(UIDS), rng.choice(VALUES)) for _ in range(rng.choice((0, 0, 0, 0, 1))))
    return Link(issuer, subject, delegate, options, conditions)


def _option(rng: random.Random, subject: str) -> Option:
    demanded = sorted(rng.sample(UIDS, rng.choice((0, 0, 1, 1, 2))))
    return Option(
        rng.choice((*ACTIONS, *(USUAL.get(subject, ACTIONS[2]),) * 3)),
        tuple(sorted(rng.sample(UIDS, rng.choice((1, 1, 2, 2, 3))))),
        tuple((uid, tuple(sorted(rng.sample(VALUES, rng.choice((1, 2)))))) for uid in demanded),
    )


def _rows(rng: random.Random) -> tuple[Row, ...]:
    return tuple(
        tuple(rng.choice((*VALUES, *VALUES, None)) for _ in UIDS) for _ in range(rng.choice((1, 1, 2, 3)))
    )
