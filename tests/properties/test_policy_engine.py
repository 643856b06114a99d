"""The engine against clingo: random rules, random steps, the same active roles and privileges after each.

The oracle shares nothing with the engine. It writes out every instance of every rule over the few constants there are,
and lets clingo compute the stable model of a positive program over numbered propositions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import DeniedError
from maia.policy import EngineLimits, PolicyEngine, parse_policy

clingo = pytest.importorskip("clingo", reason="clingo is the oracle of these tests")

PEOPLE = ("a", "b")
ROLES = {"r0": 0, "r1": 1, "r2": 1, "r3": 2}
APPOINTMENTS = {"p1": 1, "p2": 2}
PREDICATES = {"q0": 0, "q1": 1}
VARIABLES = ("x", "y")
Term = tuple[str, ...]  # a name and its arguments
Instance = tuple[tuple[object, ...], tuple[object, ...]]  # all premises, and those that are monitored


@dataclass(frozen=True)
class Clause:
    """A rule as plain tuples: the head, and (kind, atom, monitored) for each premise."""

    head: Term
    body: tuple[tuple[str, Term, bool], ...]
    privilege: bool = False

    def text(self) -> str:
        premises = ", ".join(
            f"{'?' if kind == 'environment' else ''}{show(atom, rule=True)}{'*' if monitored else ''}"
            for kind, atom, monitored in self.body
        )
        head = show(self.head, rule=True)
        return f"{premises} |- {head}" if self.privilege else f"{head} <- {premises}"


def show(atom: Term, *, rule: bool = False) -> str:
    """Write an atom; in a rule, constants stand in quotes."""
    words = [word if not rule or word in VARIABLES or word == "self" else f"'{word}'" for word in atom[1:]]
    return f"{atom[0]}({', '.join(words)})" if words else atom[0]


def atoms(names: dict[str, int], words: st.SearchStrategy[str]) -> st.SearchStrategy[Term]:
    """Draw atoms over some words."""
    return st.sampled_from(sorted(names)).flatmap(
        lambda name: st.tuples(st.just(name), *[words] * names[name])  # type: ignore[arg-type]
    )


WORDS = st.sampled_from(["self", "self", "x", "x", "y", "a"])
PREMISES = st.one_of(
    st.tuples(st.just("role"), atoms(ROLES, WORDS), st.booleans()),
    st.tuples(st.just("appointment"), atoms(APPOINTMENTS, WORDS), st.booleans()),
    st.tuples(st.just("environment"), atoms(PREDICATES, WORDS), st.booleans()),
)


def safe(clause: Clause) -> bool:
    """Whether the body binds every variable of the head."""
    bound = {word for _, atom, _ in clause.body for word in atom[1:]}
    return all(word not in VARIABLES or word in bound for word in clause.head[1:])


ACTIVATIONS = st.builds(
    Clause, head=atoms(ROLES, WORDS), body=st.lists(PREMISES, min_size=1, max_size=3).map(tuple)
).filter(safe)
AUTHORISATIONS = st.builds(
    lambda role, conditions, head: Clause(
        head=head, body=(("role", role, False), *(("environment", each, False) for each in conditions)), privilege=True
    ),
    atoms(ROLES, WORDS),
    st.lists(atoms(PREDICATES, WORDS), max_size=2),
    atoms({"t0": 0, "t1": 1}, WORDS),
).filter(safe)
# Each role has a simple way in, so that the random rules have something to stand on.
BASE = (
    Clause(head=("r0",), body=(("appointment", ("p1", "self"), True),)),
    Clause(head=("r1", "self"), body=(("appointment", ("p1", "self"), True),)),
    Clause(head=("r2", "x"), body=(("appointment", ("p2", "self", "x"), True),)),
    Clause(head=("r3", "self", "x"), body=(("environment", ("q1", "x"), True),)),
)
CONSTANTS = st.sampled_from(PEOPLE)
FACTS = st.one_of(
    st.tuples(st.just("appointment"), atoms(APPOINTMENTS, CONSTANTS)),
    st.tuples(st.just("environment"), atoms(PREDICATES, CONSTANTS)),
)
EVERY_FACT = [
    (kind, (name, *words))
    for kind, names in (("appointment", APPOINTMENTS), ("environment", PREDICATES))
    for name, arity in names.items()
    for words in itertools.product(PEOPLE, repeat=arity)
]
EVERY_ROLE = [
    (person, (name, *words))
    for person in PEOPLE
    for name, arity in ROLES.items()
    for words in itertools.product(PEOPLE, repeat=arity)
]
RUNS = st.lists(
    st.one_of(
        st.tuples(st.just("retract"), FACTS),
        st.tuples(st.just("retract"), FACTS),
        st.tuples(st.just("add"), FACTS),
        st.tuples(st.just("activate"), st.sampled_from(EVERY_ROLE)),
    ),
    min_size=3,
    max_size=12,
)
# Most facts hold and most roles are asked for, in some order, before the rest happens: then there is much to lose.
STEPS = st.builds(
    lambda facts, roles, again, run: [
        *(("add", fact) for fact in facts),
        *(("activate", role) for role in (*roles, *again)),
        *run,
    ],
    st.lists(st.sampled_from(EVERY_FACT), min_size=3, unique=True),
    st.permutations(EVERY_ROLE),
    st.lists(st.sampled_from(EVERY_ROLE), max_size=6),
    RUNS,
)


@dataclass
class Oracle:
    """States the meaning: stable models of written-out rules, and the supports that activations keep."""

    clauses: tuple[Clause, ...]
    facts: set[tuple[str, Term]] = field(default_factory=set)
    active: set[tuple[str, str, Term]] = field(default_factory=set)
    supports: dict[tuple[str, str, Term], set[tuple[object, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.instances: dict[object, list[Instance]] = {}
        self.grants: list[tuple[object, tuple[object, ...]]] = []
        for clause, person in itertools.product(self.clauses, PEOPLE):
            used = sorted({word for _, atom, _ in clause.body for word in atom[1:] if word in VARIABLES})
            for values in itertools.product(PEOPLE, repeat=len(used)):
                self._write_out(clause, person, {"self": person, **dict(zip(used, values, strict=True))})

    def _write_out(self, clause: Clause, person: str, words: dict[str, str]) -> None:
        def fill(atom: Term) -> Term:
            return (atom[0], *(words.get(word, word) for word in atom[1:]))

        choices = []
        for kind, atom, monitored in clause.body:
            filled = fill(atom)
            if kind != "role":
                choices.append([((kind, filled), monitored)])
            elif clause.privilege:
                choices.append([(("role", person, filled), monitored)])
            else:
                holders = [holder for holder in PEOPLE if holder == person or holder in filled[1:]]
                choices.append([(("role", holder, filled), monitored) for holder in holders])
        for chosen in itertools.product(*choices):
            everything = tuple(fact for fact, _ in chosen)
            if clause.privilege:
                self.grants.append(((person, fill(clause.head)), everything))
                continue
            head = ("role", person, fill(clause.head))
            if head not in everything:
                watched = tuple(sorted({fact for fact, monitored in chosen if monitored}, key=repr))
                self.instances.setdefault(head, []).append((everything, watched))

    def activate(self, person: str, role: Term) -> bool:
        wanted = ("role", person, role)
        model = least_model(self.facts | self.active, [])
        met = {watched for everything, watched in self.instances.get(wanted, ()) if model.issuperset(everything)}
        if met:
            self.active.add(wanted)
            self.supports.setdefault(wanted, set()).update(met)
        return bool(met)

    def retract(self, fact: tuple[str, Term]) -> None:
        self.facts.discard(fact)
        kept = [(role, watched) for role in self.active for watched in self.supports[role]]
        anew = [(role, body) for role in self.active for body, _ in self.instances.get(role, ())]
        strong = least_model(self.facts, kept)
        model = least_model(self.facts, kept + anew)
        self.active &= model
        self.supports = {
            role: {watched for watched in self.supports[role] if model.issuperset(watched)}
            | {watched for body, watched in self.instances[role] if role not in strong and model.issuperset(body)}
            for role in self.active
        }

    def privileges(self) -> set[tuple[str, str]]:
        model = least_model(self.facts | self.active, [(("grant", *head), body) for head, body in self.grants])
        return {(found[1], show(found[2])) for found in model if found[0] == "grant"}


def least_model(facts: set[tuple[object, ...]], rules: list[tuple[object, tuple[object, ...]]]) -> set[object]:
    """Ask clingo for the one stable model of a positive program."""
    numbers: dict[object, int] = {}

    def name(proposition: object) -> str:
        return f"x({numbers.setdefault(proposition, len(numbers))})"

    lines = [f"{name(fact)}." for fact in facts]
    lines += [f"{name(head)} :- {', '.join(map(name, body))}." if body else f"{name(head)}." for head, body in rules]
    control = clingo.Control(["--warn=none"])
    control.add("base", [], "\n".join(lines))
    control.ground([("base", [])])
    propositions = {number: proposition for proposition, number in numbers.items()}
    models = []
    control.solve(
        on_model=lambda model: models.append([each.arguments[0].number for each in model.symbols(atoms=True)])
    )
    assert len(models) == 1
    return {propositions[number] for number in models[0]}


def activated(engine: PolicyEngine, person: str, role: Term) -> bool:
    """Try to activate a role."""
    try:
        engine.activate(show(role), principal=person)
    except DeniedError:
        return False
    return True


@given(
    clauses=st.lists(st.one_of(ACTIVATIONS, ACTIVATIONS, AUTHORISATIONS), min_size=1, max_size=6),
    steps=STEPS,
)
def test_engine_and_clingo_agree_after_every_step(clauses, steps):
    """The same activations succeed, the same roles stay and the same privileges follow, in every state."""
    program = (*BASE, *clauses)
    policy = parse_policy("\n".join(clause.text() for clause in program))
    engine = PolicyEngine(policy, limits=EngineLimits(supports=100_000))
    oracle = Oracle(program)
    for verb, subject in steps:
        if verb == "activate":
            person, role = subject
            assert activated(engine, person, role) == oracle.activate(person, role)
            continue
        if verb == "add":
            kind, atom = subject
            (engine.appoint if kind == "appointment" else engine.observe)(show(atom))
            oracle.facts.add(subject)
        else:
            engine.retract(show(subject[1]))
            oracle.retract(subject)
        assert {(role.holder, str(role.atom)) for role in engine.roles()} == {
            (holder, show(role)) for _, holder, role in oracle.active
        }
        assert {(holder, str(given)) for holder, given in engine.privileges()} == oracle.privileges()
        for role in engine.roles():
            assert engine.explain(role.atom, principal=role.holder) is not None


@given(clauses=st.lists(st.one_of(ACTIVATIONS, AUTHORISATIONS), max_size=8))
def test_a_formatted_policy_reads_back_as_it_was(clauses):
    """Writing loses nothing: parse, write, parse gives equal rules."""
    policy = parse_policy("\n".join(clause.text() for clause in clauses))
    assert parse_policy("".join(f"{rule}\n" for rule in policy.rules)) == policy
