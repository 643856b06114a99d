"""Random programs over small tables, run on values and labelled by the transfer functions, and what readers see.

Nothing here knows how labels are computed: `run` gives the rows of a program, `label` what the functions say of it, and
`view` what a reader sees of both. Whoever cannot tell two inputs apart must not tell the results apart.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from maia.labels import (
    Carrier,
    How,
    RelationLabel,
    SymbolicLabel,
    explode,
    group,
    join_relations,
    limit,
    project,
    union,
    where,
    window,
)

PEOPLE = ("a", "b", "c")
VALUES = (0, 1, 2)
Row = dict[str, Any]
Table = list[Row]
Data = Mapping[str, Table]
HIDDEN = "hidden"


def carried(family: str, column: str) -> SymbolicLabel:
    """Give a label of one carrier."""
    return SymbolicLabel(carriers=frozenset({Carrier(family=family, column=column)}))


def tagged(*tags: str) -> SymbolicLabel:
    """Give a static label."""
    return SymbolicLabel(secrecy=frozenset(tags), integrity=frozenset())


SOURCES: Mapping[str, RelationLabel] = {
    # k is for everybody, p says whose the row is, s and t belong to that person, x to whoever holds one more tag
    "open": RelationLabel(columns={
        "k": tagged(), "p": tagged(), "s": carried("f", "p"), "x": tagged("t").join(carried("f", "p")),
    }),
    # whose the row is, is a secret too
    "shut": RelationLabel(columns={"k": tagged(), "p": tagged("id"), "s": carried("f", "p"), "x": tagged("t")}),
}  # fmt: skip
READERS = tuple(
    frozenset(f"f({one})" for one, there in zip(PEOPLE, chosen, strict=True) if there)
    | (frozenset({"f(*)"}) if all(chosen) else frozenset())
    | extra
    for chosen in product((False, True), repeat=3)
    for extra in (frozenset(), frozenset({"id"}), frozenset({"t"}), frozenset({"id", "t"}))
)


@dataclass(frozen=True)
class Program:
    """What a program does to values, and what the functions say of it."""

    text: str
    run: Callable[[Data], Table]
    label: Callable[[], RelationLabel]
    columns: tuple[str, ...]


def read(name: str) -> Program:
    """Read a source."""
    return Program(name, lambda data: [dict(row) for row in data[name]], lambda: SOURCES[name],
                   tuple(SOURCES[name].columns))  # fmt: skip


def make(rng: random.Random, depth: int) -> Program:
    """Draw a program of some operators."""
    if depth == 0:
        return read(rng.choice(tuple(SOURCES)))
    return rng.choice(OPERATORS)(rng, make(rng, depth - 1), depth)


def filtered(rng: random.Random, inner: Program, _depth: int) -> Program:
    """Keep rows with a value."""
    column, value = rng.choice(inner.columns), rng.choice((*VALUES, *PEOPLE[:1]))
    return Program(
        f"where({column}={value}, {inner.text})",
        lambda data: [row for row in inner.run(data) if row[column] == value],
        lambda: where(inner.label(), [column]),
        inner.columns,
    )


def selected(rng: random.Random, inner: Program, _depth: int) -> Program:
    """Keep some columns, perhaps under other names, and compute one."""
    kept = rng.sample(inner.columns, rng.randint(1, len(inner.columns)))
    names = {rng.choice((name, name, f"{name}{index}")): name for index, name in enumerate(kept)}
    made = tuple(rng.sample(inner.columns, min(2, len(inner.columns))))
    outputs: dict[str, Any] = dict(names)
    if rng.random() < 0.5:
        outputs[rng.choice((*kept, "y"))] = made
    return Program(
        f"select({outputs}, {inner.text})",
        lambda data: [
            {name: row[how] if isinstance(how, str) else sum(map(number, (row[one] for one in how)))
             for name, how in outputs.items()}
            for row in inner.run(data)
        ],
        lambda: project(inner.label(), outputs),
        tuple(outputs),
    )  # fmt: skip


def joined(rng: random.Random, inner: Program, depth: int) -> Program:
    """Join with another program, in any way."""
    other, how = make(rng, rng.randint(0, depth - 1)), rng.choice(tuple(How))
    shared = [name for name in inner.columns if name in other.columns]
    on = rng.sample(shared, rng.randint(1, min(2, len(shared)))) if shared else []
    doubled = [name for name in shared if name not in on]
    only = {name: name for name in other.columns if name not in doubled}
    columns = inner.columns if how in (How.SEMI, How.ANTI) else tuple(dict.fromkeys([*inner.columns, *only]))

    def run(data: Data) -> Table:
        return join_rows(inner.run(data), [{name: row[name] for name in only} for row in other.run(data)], on, how,
                         inner.columns, tuple(only))  # fmt: skip

    return Program(
        f"{how.value}-join({on}, {inner.text}, {other.text})", run,
        lambda: join_relations(inner.label(), project(other.label(), only), on, how), columns,
    )  # fmt: skip


def united(rng: random.Random, inner: Program, _depth: int) -> Program:
    """Take the rows of a program and of a part of it."""
    other = filtered(rng, inner, 0)
    return Program(
        f"union({inner.text}, {other.text})", lambda data: inner.run(data) + other.run(data),
        lambda: union(inner.label(), other.label()), inner.columns,
    )  # fmt: skip


def grouped(rng: random.Random, inner: Program, _depth: int) -> Program:
    """Count and sum by keys; the values of carriers are gathered, or not."""
    keys = rng.sample(inner.columns, rng.randint(0, min(2, len(inner.columns))))
    summed = rng.choice(inner.columns)
    carriers = sorted({
        item.column for found in (*inner.label().columns.values(), inner.label().rows) for item in found.carriers
        if item.column is not None and item.column not in keys
    })  # fmt: skip
    gathered = {name: f"_{name}_{len(inner.text)}" for name in carriers} if rng.random() < 0.7 else {}

    def run(data: Data) -> Table:
        groups: dict[tuple[Any, ...], Table] = {} if keys else {(): []}
        for row in inner.run(data):
            groups.setdefault(tuple(row[name] for name in keys), []).append(row)
        return [
            dict(zip(keys, key, strict=True))
            | {"n": len(rows), "sum": sum(number(row[summed]) for row in rows)}
            | {name: gather(row[column] for row in rows) for column, name in gathered.items()}
            for key, rows in groups.items()
        ]

    if {"n", "sum"} & set(keys):
        return inner
    return Program(
        f"group({keys}, sum {summed}, gathered {sorted(gathered)}, {inner.text})", run,
        lambda: group(inner.label(), keys, {"n": (), "sum": [summed]}, gathered=gathered),
        (*keys, "n", "sum", *gathered.values()),
    )  # fmt: skip


def ranked(rng: random.Random, inner: Program, _depth: int) -> Program:
    """Count and sum over a partition, up to this row in an order."""
    partition = rng.sample(inner.columns, rng.randint(0, min(2, len(inner.columns))))
    order, summed, name = rng.choice(inner.columns), rng.choice(inner.columns), rng.choice(("w", *inner.columns[:1]))

    def run(data: Data) -> Table:
        rows = inner.run(data)
        return [
            row | {name: sum(1 + number(one[summed]) for one in rows
                             if all(one[part] == row[part] for part in partition)
                             and number(one[order]) <= number(row[order]))}
            for row in rows
        ]  # fmt: skip

    return Program(
        f"window({name}, {partition}, {order}, {summed}, {inner.text})", run,
        lambda: window(inner.label(), name, reads=[summed], partition=partition, order=[order]),
        tuple(dict.fromkeys([*inner.columns, name])),
    )  # fmt: skip


def exploded(rng: random.Random, inner: Program, _depth: int) -> Program:
    """Make as many rows as a value says."""
    column, name = rng.choice(inner.columns), rng.choice(("e", *inner.columns[:1]))
    return Program(
        f"explode({name}, {column}, {inner.text})",
        lambda data: [row | {name: one} for row in inner.run(data) for one in range(number(row[column]) % 3)],
        lambda: explode(inner.label(), name, [column]),
        tuple(dict.fromkeys([*inner.columns, name])),
    )


def cut(rng: random.Random, inner: Program, _depth: int) -> Program:
    """Keep the first rows in an order."""
    column, most = rng.choice(inner.columns), rng.randint(1, 3)
    return Program(
        f"limit({most}, {column}, {inner.text})",
        lambda data: sorted(inner.run(data), key=lambda row: (number(row[column]), repr(sorted(row.items()))))[:most],
        lambda: limit(inner.label(), inner.columns),  # ties are broken by all that there is
        inner.columns,
    )


OPERATORS = (filtered, filtered, selected, joined, united, grouped, grouped, ranked, exploded, cut)


def join_rows(
    left: Table, right: Table, on: Sequence[str], how: How, ours: Sequence[str], theirs: Sequence[str]
) -> Table:
    """Join as SQL does; columns of both are there once."""
    found: Table = []
    met: set[int] = set()
    for row in left:
        matches = [index for index, other in enumerate(right) if all(row[name] == other[name] for name in on)]
        met.update(matches)
        if how in (How.SEMI, How.ANTI):
            found += [row] if bool(matches) is (how is How.SEMI) else []
            continue
        found += [row | right[index] for index in matches]
        if not matches and how in (How.LEFT, How.FULL):
            found.append(dict.fromkeys(theirs) | row)
    if how in (How.RIGHT, How.FULL):
        found += [dict.fromkeys(ours) | row for index, row in enumerate(right) if index not in met]
    return found


def number(value: Any) -> int:
    """Read anything as a number."""
    if isinstance(value, int):
        return value
    return 0 if value is None else sum(map(ord, "".join(sorted(value))))


def gather(values: Iterator[Any]) -> frozenset[str]:
    """Gather values, and sets of them, into one set."""
    found: set[str] = set()
    for value in values:
        if value is not None:
            found |= {value} if isinstance(value, str) else set() if isinstance(value, int) else set(value)
    return frozenset(found)


def view(rows: Table, label: RelationLabel, reader: frozenset[str]) -> Counter[tuple[Any, ...]]:
    """Give what a reader sees: rows whose presence may flow to it, and in them the cells that may."""
    seen: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        carriers = {name: text(value) for name, value in row.items()}
        if label.rows.at(carriers).secrecy <= reader:
            seen[tuple(
                row[name] if found.at(carriers).secrecy <= reader else HIDDEN for name, found in label.columns.items()
            )] += 1  # fmt: skip
    return seen


def text(value: Any) -> Any:
    """Give a carrier's value as text, as sources hold it."""
    return str(value) if isinstance(value, int) else value


def draw(rng: random.Random) -> Data:
    """Draw the rows of the sources."""
    return {
        name: [{"k": rng.choice(VALUES[:2]), "p": rng.choice(PEOPLE), "s": rng.choice(VALUES), "x": rng.choice(VALUES)}
               for _ in range(rng.randint(0, 4))]
        for name in SOURCES
    }  # fmt: skip


def like(rng: random.Random, data: Data, reader: frozenset[str]) -> Data:
    """Draw other rows that look the same to a reader: what it cannot see is drawn anew."""
    found: dict[str, Table] = {}
    for name, rows in data.items():
        found[name] = []
        for row in rows:
            new = dict(row)
            if name == "shut" and "id" not in reader:
                mine = f"f({row['p']})" in reader
                new["p"] = rng.choice([one for one in PEOPLE if (f"f({one})" in reader) is mine])
            for column in ("s", "x"):
                if not SOURCES[name].columns[column].at(new).secrecy <= reader:
                    new[column] = rng.choice(VALUES)
            found[name].append(new)
    return found


def changes(data: Data) -> Iterator[tuple[Data, str, int, str]]:
    """Change one secret cell at a time, to every other value: the source, the row and the column that changed."""
    for name, rows in data.items():
        for index, row in enumerate(rows):
            for column in ("s", "x"):
                for value in VALUES:
                    if value != row[column]:
                        changed = [dict(one) for one in rows]
                        changed[index][column] = value
                        yield {**data, name: changed}, name, index, column
