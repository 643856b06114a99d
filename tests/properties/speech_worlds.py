"""Random chains with constraints, conditions, thresholds and names, and an oracle of what they open.

A world is one event type with two versions and three attributes, whose values are few enough to try every event there
can be; only one attribute is in both versions. Rights are on one version or on every, and come from the owner over
honest keys to one attacker, who issues rights of its own among its keys. The oracle knows nothing of tags: a right is a
set of uids, whether it is on every version and, by uid, the set of values that a row may have; it follows chains in
plain Python, one version at a time.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pyarrow as pa

from maia.authority import Action, CertificatePool, Constraint, Verifier, VerifierLimits, ask_type, one_of, type_right
from maia.errors import DeniedError
from maia.events import AttributeType, EventType, TypeName, Version, arrow_type, attribute
from maia.filters import TypedFilter
from maia.kernel import DeliveryPlan, Sessions, Subscription, clauses_from, enforce_publication, versions_of
from maia.kernel.origin_right import within_right
from maia.principals import Authorisation, KeySigner, Name, Naming, Threshold, issue

UIDS = ("1", "2", "3")
VALUES = (0, 1, 2)
CELLS = (None, *VALUES)
EVENTS = tuple(dict(zip(UIDS, cells, strict=True)) for cells in itertools.product(CELLS, repeat=len(UIDS)))
KEYS = {
    name: KeySigner(bytes([number + 1]) * 32) for number, name in enumerate(("owner", "a", "b", "c", "h", "h1", "h2"))
}
ATTACKER = ("h", "h1", "h2")
VERSIONS = {"8": frozenset("12"), "9": frozenset("23")}
TYPES = {
    version: EventType(
        name=TypeName(KEYS["owner"].public_key, "T", Version(version)),
        attributes=tuple(attribute(f"x{uid}", int(uid), "integer") for uid in sorted(uids)),
    )
    for version, uids in VERSIONS.items()
}
KINDS = dict.fromkeys(UIDS, AttributeType.INTEGER)


@dataclass(frozen=True)
class Option:
    """One alternative of a link; ``*`` is every version, and all uids are written as all attributes."""

    version: str
    actions: frozenset[str]
    uids: frozenset[str]
    demands: tuple[tuple[str, frozenset[int]], ...]


@dataclass(frozen=True)
class Link:
    """A certificate in plain words; a subject is a key, the name ``staff`` of the owner, or two keys together."""

    issuer: str
    subject: tuple[str, ...]
    delegate: bool
    options: tuple[Option, ...]
    conditions: tuple[tuple[str, int], ...]  # the attribute has this value


@dataclass(frozen=True)
class World:
    """Rights from above, the keys that ``staff`` stands for, and what the attacker issues itself."""

    above: tuple[Link, ...]
    staff: tuple[str, ...]
    own: tuple[Link, ...]


# ---------------------------------------------------------------- drawing


def draw_world(rng: random.Random) -> World:
    """Draw a world; the attacker's own rights say whatever they like."""
    above = []
    honest = ("owner", "a", "b", "c")
    for _ in range(rng.randint(2, 7)):
        issuer = rng.choice(honest)
        subjects = [("h",), (rng.choice("abc"),), ("staff",), tuple(rng.sample(("a", "b", "h"), 2))]
        above.append(_link(rng, issuer, rng.choice(subjects), delegate=rng.random() < 0.9))
    above.append(
        _link(rng, "owner", ("h",) if rng.random() < 0.5 else tuple(rng.sample(("a", "b", "h"), 2)), delegate=True)
    )
    own = [
        _link(rng, rng.choice(ATTACKER), (rng.choice(ATTACKER),), delegate=rng.random() < 0.8)
        for _ in range(rng.randint(0, 4))
    ]
    own.append(_link(rng, "h", (rng.choice(("h1", "h2")),), delegate=rng.random() < 0.8))
    return World(tuple(above), tuple(rng.sample(("a", "b", "h"), rng.randint(1, 2))), tuple(own))


def _link(rng: random.Random, issuer: str, subject: tuple[str, ...], *, delegate: bool) -> Link:
    options = tuple(_option(rng) for _ in range(rng.choice((1, 1, 1, 2))))
    conditions = tuple((rng.choice(UIDS), rng.choice(VALUES)) for _ in range(rng.choice((0, 0, 0, 1))))
    return Link(issuer, subject, delegate, options, conditions)


def _option(rng: random.Random) -> Option:
    actions = rng.choice((("subscribe",), ("publish",), ("publish", "subscribe"), ("publish", "subscribe")))
    uids = rng.sample(UIDS, rng.choice((1, 1, 2, 2, 3, 3)))
    demanded = rng.sample(UIDS, rng.choice((0, 0, 1, 1, 2)))
    demands = tuple((uid, frozenset(rng.sample(VALUES, rng.choice((1, 2))))) for uid in sorted(demanded))
    return Option(rng.choice(("*", "*", "8", "8", "9")), frozenset(actions), frozenset(uids), demands)


# ---------------------------------------------------------------- for the product


def certificates(links: tuple[Link, ...], staff: tuple[str, ...]) -> list[bytes]:
    """Sign the links of a world, and the names in it."""
    owner = KEYS["owner"]
    made = [
        issue(Naming(issuer=owner.public_key, name="staff", subject=KEYS[who].public_key), owner).raw for who in staff
    ]
    for link in links:
        signer = KEYS[link.issuer]
        body = Authorisation(
            issuer=signer.public_key, subject=_subject(link.subject), delegate=link.delegate,
            tag=one_of(_tag(option) for option in link.options).to_sexp(),
            conditions=tuple(f'event["{uid}"] == {value}' for uid, value in link.conditions),
        )  # fmt: skip
        made.append(issue(body, signer).raw)
    return made


def _subject(names: tuple[str, ...]):
    if names == ("staff",):
        return Name(KEYS["owner"].public_key, ("staff",))
    keys = tuple(KEYS[name].public_key for name in names)
    return keys[0] if len(keys) == 1 else Threshold(2, keys)


def _tag(option: Option):
    demands = [Constraint(uid, "in", tuple(sorted(values))) for uid, values in option.demands]
    return type_right(
        KEYS["owner"].public_key, "T", option.version, actions=[Action(word) for word in sorted(option.actions)],
        attributes=None if option.uids == frozenset(UIDS) else sorted(option.uids), constraints=demands,
    )  # fmt: skip


def _verifier() -> Verifier:
    return Verifier(limits=VerifierLimits(max_steps=100_000))


def clauses_of(world: World, who: str, action: Action, version: str, at):
    """The clauses that the product derives for a key from everything that was issued."""
    pool = CertificatePool(certificates(world.above + world.own, world.staff))
    return Sessions(_verifier()).clauses(KEYS[who].public_key, action, TYPES[version], pool, at=at)


def kept_of_origin(world: World, who: str, event: dict, at) -> dict:
    """What a reader keeps of an event that a key sealed as it likes, by uid."""
    pool, versions = CertificatePool(certificates(world.above + world.own, world.staff)), versions_of(TYPES.values())
    request = ask_type(Action.PUBLISH, KEYS["owner"].public_key, "T", None, versions)
    rights = _verifier().clauses(request, principal=KEYS[who].public_key, evidence=pool, at=at)
    clauses = [clause for clause in clauses_from(rights, versions) if not clause.conditions]
    columns = {uid.encode(): pa.array([value], arrow_type(AttributeType.INTEGER)) for uid, value in event.items()}
    try:
        kept = within_right(columns, clauses, 1)
    except DeniedError:
        return {}
    return {uid.decode(): column[0].as_py() for uid, column in kept.items()}


def deliveries(world: World, who: str, version: str, at) -> list[dict | None]:
    """What a key gets of every event there is, by the kernel."""
    plan = DeliveryPlan(KINDS)
    clauses = clauses_of(world, who, Action.SUBSCRIBE, version, at)
    plan.add(Subscription("s", TYPES[version], TypedFilter(constraints=()), clauses))
    seen: list[dict | None] = [None] * len(EVENTS)
    for delivery in plan.deliver(_batch({uid: uid for uid in UIDS})):
        for place, row in zip(delivery.rows.tolist(), delivery.batch.to_pylist(), strict=True):
            seen[place] = row
    return seen


def publications(world: World, who: str, version: str, at) -> list[dict]:
    """What leaves when a key publishes every event that a version can have, by uid."""
    clauses = clauses_of(world, who, Action.PUBLISH, version, at)
    batch = _batch({uid: f"x{uid}" for uid in sorted(VERSIONS[version])})
    return enforce_publication(TYPES[version], batch, clauses, at=at).batch.to_pylist()


def _batch(names: dict[str, str]) -> pa.RecordBatch:
    kind = arrow_type(AttributeType.INTEGER)
    return pa.RecordBatch.from_arrays(
        [pa.array([event[uid] for event in EVENTS], type=kind) for uid in names], names=list(names.values())
    )


# ---------------------------------------------------------------- the oracle


@dataclass(frozen=True)
class Right:
    """What a chain opens of a version: uids, and by uid the values that a row must have one of.

    On every version, it opens the attributes of the others too.
    """

    version: str
    every: bool
    uids: frozenset[str]
    demands: tuple[tuple[str, frozenset[int]], ...]

    @property
    def opened(self) -> frozenset[str]:
        """What it really opens."""
        return self.uids if self.every else self.uids & VERSIONS[self.version]

    def asks(self, uid: str) -> frozenset[int] | None:
        """What is asked of one attribute, if anything."""
        return dict(self.demands).get(uid)

    def meet(self, other: Right) -> Right | None:
        """What both allow."""
        merged = dict(self.demands)
        for uid, values in other.demands:
            merged[uid] = merged[uid] & values if uid in merged else values
        uids = self.uids & other.uids
        if not uids or not all(merged.values()):
            return None
        return Right(self.version, self.every and other.every, uids, tuple(sorted(merged.items())))


@dataclass(frozen=True)
class Holding:
    """The rights of one chain, with its conditions."""

    rights: tuple[Right, ...]
    conditions: frozenset[tuple[str, int]]

    def views(self, event: dict) -> tuple:
        """What each right shows of an event."""
        met = all(event[uid] == value for uid, value in self.conditions)
        return tuple(
            tuple(event[uid] for uid in sorted(right.opened))
            if met and all(event[uid] in values for uid, values in right.demands)
            else None
            for right in self.rights
        )


def holdings(world: World, action: str, version: str) -> list[Holding]:
    """What the attacker was given of a version, chain by chain, before it issues anything."""
    everything = Holding((Right(version, every=True, uids=frozenset(UIDS), demands=()),), frozenset())
    return _from(world, action, "owner", everything, frozenset(), delegate=True)


def _from(world, action, key, holding, path, *, delegate) -> list[Holding]:
    found = [holding] if key == "h" else []
    if not delegate or key in path:
        return found
    for link in world.above:
        narrowed = _narrowed(holding, link, action) if link.issuer == key else None
        if narrowed is None:
            continue
        further = (world, action, path | {key}, link.delegate, narrowed)
        if len(link.subject) == 2:
            shares = [_below(member, *further) for member in link.subject]
            found += [joined for pair in itertools.product(*shares) if (joined := _joined(*pair)) is not None]
        else:
            for member in world.staff if link.subject == ("staff",) else link.subject:
                found += _below(member, *further)
    return found


def _below(member, world, action, path, delegate, holding) -> list[Holding]:
    return _from(world, action, member, holding, path, delegate=delegate)


def _narrowed(holding: Holding, link: Link, action: str) -> Holding | None:
    left = []
    new = {uid for uid, value in link.conditions if (uid, value) not in holding.conditions}
    version = holding.rights[0].version
    options = [
        Right(version, option.version == "*", option.uids, option.demands)
        for option in link.options
        if action in option.actions and option.version in ("*", version)
    ]
    for right in holding.rights:
        heard = [(option, met) for option in options if (met := right.meet(option)) is not None]
        added = new | {
            uid for option, met in heard for uid, _ in option.demands if met.asks(uid) != right.asks(uid)
        }  # fmt: skip
        if added <= right.opened:
            left += [met for _, met in heard]
    return Holding(tuple(left), holding.conditions | frozenset(link.conditions)) if left else None


def _joined(one: Holding, two: Holding) -> Holding | None:
    """Two shares together: what each adds to the other names only what the other opens."""
    left = []
    for a, b in itertools.product(one.rights, two.rights):
        both = a.meet(b)
        if both is not None and _hears(a, one, both, two) and _hears(b, two, both, one):
            left.append(both)
    return Holding(tuple(left), one.conditions | two.conditions) if left else None


def _hears(share: Right, held: Holding, both: Right, other: Holding) -> bool:
    added = {uid for uid, _ in other.conditions - held.conditions}
    return added | {uid for uid in UIDS if both.asks(uid) != share.asks(uid)} <= share.opened
