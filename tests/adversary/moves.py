"""What an attacker tries: a small world in plain words, and random sequences of moves in it.

The cast. Honest: ``o`` owns the type; ``s`` is a domain that publishes (broker ``sb``, client ``camera``); ``m`` is a
domain that serves readers (broker ``mb``, client ``reader``); ``a`` is a department that hands rights on. The
coalition: ``h`` and ``g`` are clients of ``m``, ``w`` is a client of ``s``, ``x`` speaks for a domain of its own with
the broker ``xb``, and ``p`` owns a type of the same name. All keys of the coalition, and all that they hold, are the
attacker's; it can write anywhere in the shared log.

A sequence is drawn from a seed and is data: any part of its moves can be left out, which is how a failing one is made
small. Nothing of Maia is imported here.
"""

from __future__ import annotations

import random
from collections.abc import Callable
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
class Again(Move):
    """What a client of the coalition once began to read is worked through again, by the plan of then."""

    which: int


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


@dataclass(frozen=True)
class Tidy(Move):
    """The honest publisher keeps its lane in order, in a way that ``how`` names."""

    how: str
    target: int


@dataclass(frozen=True)
class Fail(Move):
    """A disk fails once: the so-many-th call of the honest move that comes next."""

    call: int


@dataclass(frozen=True)
class Migrate(Move):
    """The coalition plants an old log in the honest publisher's name, which takes over what is its own in it."""

    source: str
    number: int


COMMITS = ("own", "own", "beyond", "beyond", "ahead", "backdate", "twice", "replay", "fork", "other-type", "borrowed")
TAMPERS = (
    "junk-record", "junk-head", "old-head", "foreign-record", "replayed-record", "far-record", "stranger-lane",
    "no-head", "no-record", "no-segment", "no-evidence", "flip-record", "flip-segment", "swap-segments",
    "cut-segment", "directory", "fifo", "endless", "old-notice", "no-notice", "junk-notice", "mute-notice",
)  # fmt: skip
PROOFS = ("wrong-key", "replay", "other-audience", "broker", "renamed")


@dataclass(frozen=True)
class Sequence:
    """One attack.

    Attributes:
        seed: What it was drawn from.
        theme: What it is mostly about.
        given: What honest parties gave, to the coalition and to ``a``.
        domain: Whether the owner calls ``x`` one of its domains.
        moves: What happens, in this order.
    """

    seed: int
    theme: str
    given: tuple[Link, ...]
    domain: bool
    moves: tuple[Move, ...]

    def __str__(self) -> str:
        """Write it down for whoever looks into a failure."""
        lines = [f"seed {self.seed}, {self.theme}, x is {'a' if self.domain else 'no'} domain"]
        lines += [f"  given  {item}" for item in self.given]
        return "\n".join([*lines, *(f"  {number:2}  {move}" for number, move in enumerate(self.moves))])

    def without(self, *, move: int | None = None, link: int | None = None) -> Sequence:
        """Leave out one move, or one right."""
        if move is not None:
            return replace(self, moves=self.moves[:move] + self.moves[move + 1 :])
        assert link is not None
        return replace(self, given=self.given[:link] + self.given[link + 1 :])


# ---------------------------------------------------------------- drawing


_EVERYTHING = {
    Issue: 14, Forge: 3, Call: 3, Publish: 10, Repeat: 2, Commit: 10, Tamper: 14, Restore: 2, Subscribe: 16, Again: 4,
    Follow: 6, Join: 5, Revoke: 5, Pass: 4, Prove: 4,
}  # fmt: skip
THEMES: dict[str, tuple[str, dict[type[Move], int]]] = {
    "everything": ("hwx", _EVERYTHING),
    "readers": ("h", {Issue: 10, Forge: 2, Publish: 5, Subscribe: 10, Pass: 1}),
    "publishers": ("w", {Issue: 6, Forge: 2, Publish: 12, Repeat: 2, Follow: 2}),
    "origins": ("x", {Issue: 2, Commit: 14, Tamper: 2, Publish: 3, Follow: 6, Revoke: 1}),
    "keys": ("x", {Issue: 6, Call: 4, Forge: 1, Join: 10, Revoke: 2, Pass: 1, Commit: 2}),
    "log": ("x", {Publish: 8, Tamper: 14, Follow: 8, Commit: 5, Repeat: 2, Restore: 2}),
    "time": ("hhw", {Revoke: 5, Pass: 9, Tamper: 6, Publish: 3, Subscribe: 10, Again: 9, Restore: 1}),
}
"""What a sequence is mostly about: to whom the owner surely gives something, and how often each move is made."""
UPKEEP = {
    Publish: 8, Tidy: 9, Fail: 6, Follow: 7, Repeat: 2, Migrate: 3, Commit: 4, Tamper: 2, Restore: 2, Subscribe: 3,
}  # fmt: skip
"""The same for sequences about what owners do with their lanes, to which some seeds belong."""
_UPKEEP_EVERY, _UPKEEP_AT = 20, (3, 8, 15)
_LIES = ("lie", "lie", "backdate", "own", "beyond")
ON_HOMES: dict[str, dict[type[Move], int]] = {
    "rekeys": {Publish: 10, Join: 6, Revoke: 5, Pass: 4, Tamper: 8, Follow: 6, Restore: 1},
    "silence": {Publish: 8, Join: 1, Revoke: 7, Pass: 7, Tamper: 8, Follow: 1},
}
"""The same for sequences that are played on real homes with a real key manager; they are few, since they cost more."""
_EVERY = 100
_TAMPERED = {
    "time": ("old-notice", "no-notice", "junk-notice", "mute-notice", "mute-notice"),
    "rekeys": ("no-rekey", "no-rekey", "old-rekey", "old-rekey", "old-rekey-head", "junk-rekey"),
    "silence": ("mute-rekey", "mute-rekey", "no-rekey", "old-rekey-head"),
}


def draw(seed: int) -> Sequence:
    """Draw an attack."""
    rng = random.Random(seed)
    if seed % _EVERY == _EVERY - 1:
        return _draw_on_homes(seed, rng)
    if seed % _UPKEEP_EVERY in _UPKEEP_AT:
        return _draw_upkeep(seed, rng)
    theme = rng.choice(tuple(THEMES))
    favoured, weights = THEMES[theme]
    given = [_given(rng) for _ in range(rng.randint(0, 2))]
    given.append(replace(_given(rng), issuer="o", subject=rng.choice(favoured), delegate=True))
    if theme == "time" and rng.random() < 0.7:
        given[-1] = replace(_plain(given[-1]), until=given[-1].until)
    moves = [_move(rng, weights, theme) for _ in range(rng.randint(3, 7))]
    if not any(isinstance(move, Publish) for move in moves):
        moves.insert(0, Publish("camera", _rows(rng)))
    return Sequence(seed, theme, tuple(given), rng.random() < 0.7, tuple(moves))


def _draw_upkeep(seed: int, rng: random.Random) -> Sequence:
    whole = Option(ACTIONS[1], UIDS)
    given = [
        replace(_given(rng), issuer="o", subject=rng.choice("hg"), delegate=True),
        Link("o", "x", True, (whole,)),
    ]
    moves = [_move(rng, UPKEEP, "upkeep") for _ in range(rng.randint(4, 8))]
    start: list[Move] = [Publish("camera", _rows(rng)) for _ in range(rng.randint(1, 3))]
    failing = Fail(rng.randint(1, 45))  # where something of the lane is read, or let go, for the first time
    start += rng.choice(([], [failing, Follow()], [Follow(), failing, Tidy("expire", rng.randrange(64))]))
    return Sequence(seed, "upkeep", tuple(given), rng.random() < 0.7, (*start, *moves))


def _draw_on_homes(seed: int, rng: random.Random) -> Sequence:
    given = [
        replace(_given(rng), issuer="o", subject="x", delegate=True, listed=True, until=None, conditions=())
        for _ in range(rng.randint(1, 2))
    ]
    given[0] = _plain(given[0])
    theme = rng.choice(tuple(ON_HOMES))
    moves = [_move(rng, ON_HOMES[theme], theme) for _ in range(rng.randint(4, 9))]
    start = (Join("xb"), Publish("camera", _rows(rng)))
    return Sequence(seed, theme, tuple(given), rng.random() < 0.9, (*start[: rng.randint(1, 2)], *moves))


def _move(rng: random.Random, weights: dict[type[Move], int], theme: str) -> Move:
    kind = rng.choices(tuple(weights), tuple(weights.values()))[0]
    return _MAKERS[kind](rng, theme)


_MAKERS: dict[type[Move], Callable[[random.Random, str], Move]] = {
    Issue: lambda rng, theme: Issue(_own(rng, theme)),
    Forge: lambda rng, theme: Forge(replace(_own(rng, theme), issuer=rng.choice(("o", "a", "m", "s")))),
    Call: lambda rng, _: Call(
        Naming(
            rng.choice(("h", "g", "x", "w")),
            rng.choice(("brokers", "brokers", "domains")),
            rng.choice(("xb", "xb", "h", "g", "x", "w")),
        )
    ),
    Publish: lambda rng, theme: Publish(rng.choice(("camera", "w" if theme == "publishers" else "camera")), _rows(rng)),
    Repeat: lambda rng, _: Repeat(rng.randrange(8)),
    Commit: lambda rng, theme: Commit(rng.choice(_LIES if theme == "upkeep" else COMMITS), _rows(rng)),
    Tidy: lambda rng, _: Tidy(rng.choice(("compact", "compact", "expire", "expire", "sweep")), rng.randrange(64)),
    Fail: lambda rng, _: Fail(rng.randint(1, 45)),
    Migrate: lambda rng, _: Migrate(rng.choice(("sb", "xb")), rng.randrange(8)),
    Tamper: lambda rng, theme: Tamper(rng.choice(_TAMPERED.get(theme, TAMPERS)), rng.randrange(64)),
    Restore: lambda _rng, _: Restore(),
    Subscribe: lambda rng, theme: Subscribe(
        rng.choice("hhg") if theme == "time" else rng.choice(READERS),
        None if rng.random() < 0.6 else (rng.choice(UIDS), rng.choice(VALUES)),
    ),
    Again: lambda rng, _: Again(rng.randrange(4)),
    Follow: lambda _rng, _: Follow(),
    Join: lambda rng, _: Join(rng.choice(("xb", "xb", "h", "g", "w", "x"))),
    Revoke: lambda rng, _: Revoke(rng.randrange(8)),
    Pass: lambda rng, _: Pass(rng.choice((2, 20, 45, 70, 90, 200))),
    Prove: lambda rng, _: Prove(rng.choice(PROOFS)),
}


def _given(rng: random.Random) -> Link:
    issuer = rng.choice(("o", "o", "o", "a", "m", "s"))
    subject = rng.choice(
        ("h", "h", "g", "w", "w", "x", "x", "xb", "a") if issuer == "o" else ("h", "g", "w", "x", "xb")
    )
    link = _link(rng, issuer, subject, delegate=rng.random() < 0.7)
    return replace(
        link,
        until=rng.choice((None, None, None, 10, 60)),
        listed=issuer in ("o", "a") and rng.random() < 0.5,
    )


def _plain(link: Link) -> Link:
    """The same right in every row and at every time, until lists end it."""
    options = tuple(replace(option, demands=()) for option in link.options)
    return replace(link, options=options, conditions=(), until=None, listed=True)


def _own(rng: random.Random, theme: str) -> Link:
    issuers, subjects = _HANDS.get(theme, ("hhhgwwxx", ("g", "g", "g", "h", "w", "w", "x", "xb")))
    return _link(rng, rng.choice(issuers), rng.choice(subjects), delegate=rng.random() < 0.7)


_HANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "readers": ("hhhg", ("g", "g", "h")), "publishers": ("www", ("w",)), "origins": ("x", ("xb", "x")),
    "keys": ("xxhg", ("xb", "xb", "h", "g", "x")),
}  # fmt: skip


def _link(rng: random.Random, issuer: str, subject: str, *, delegate: bool) -> Link:
    options = tuple(_option(rng, subject) for _ in range(rng.choice((1, 1, 1, 2))))
    conditions = tuple((rng.choice(UIDS), rng.choice(VALUES)) for _ in range(rng.choice((0, 0, 1))))
    return Link(issuer, subject, delegate, options, conditions)


def _option(rng: random.Random, subject: str) -> Option:
    demanded = sorted(rng.sample(UIDS, rng.choice((0, 0, 1, 1, 2))))
    return Option(
        rng.choice((*ACTIONS, *(USUAL.get(subject, ACTIONS[2]),) * 3)),
        tuple(sorted(rng.sample(UIDS, rng.choice((1, 1, 2, 2, 3))))),
        tuple((uid, tuple(sorted(rng.sample(VALUES, rng.choice((1, 2)))))) for uid in demanded),
    )


def _rows(rng: random.Random) -> tuple[Row, ...]:
    return tuple(tuple(rng.choice((*VALUES, *VALUES, None)) for _ in UIDS) for _ in range(rng.choice((1, 1, 2, 3))))
