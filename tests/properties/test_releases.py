"""Release rules: what leaves, against a second implementation that shares nothing with the first."""

from __future__ import annotations

import string
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from release_oracle import KINDS, TO, leaves, written

from maia.errors import MaiaError
from maia.events import arrow_type, parse_attribute_type
from maia.policy import release

TYPES = {name: parse_attribute_type(kind) for name, kind in KINDS.items()}
TEXTS = st.text(alphabet="abπ🜁 ,.'\"\\0", max_size=8)
NUMBERS = st.decimals(min_value=-999, max_value=999, places=4).map(str)
VALUES = {
    "ward": st.sampled_from(["a", "b", "c"]),
    "plate": TEXTS,
    "place": st.one_of(NUMBERS, st.tuples(NUMBERS, NUMBERS).map(",".join), st.just("Victoria"), st.just("")),
    "age": st.integers(-120, 120),
    "lat": st.one_of(st.floats(-200, 200, width=32), st.sampled_from([0.0, -0.0, 0.25, 0.15, -0.05])),
    "cost": st.decimals(min_value=-999, max_value=999, places=4),
    "born": st.dates(date(1, 1, 1), date(9999, 12, 31)),
    "seen": st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(lambda at: at.replace(tzinfo=UTC)),  # noqa: DTZ001
    "blob": st.binary(max_size=4),
    "alive": st.booleans(),
}
ROWS = st.lists(
    st.fixed_dictionaries({name: st.one_of(st.none(), values) for name, values in VALUES.items()}), max_size=25
)
PLACES = st.sampled_from(["registry", 'study("bladder-7")', 'study("lung-1")'])
NAMING = [name for name, kind in KINDS.items() if kind not in ("float", "boolean")]


@st.composite
def coarsenings(draw: st.DrawFn, name: str) -> tuple:
    """Make a clause that coarsens an attribute in a way that fits its type."""
    form = draw(st.sampled_from(TO[KINDS[name]]))
    size = None
    if form == "decimals":
        size = draw(st.integers(0, 3))
    elif form in ("bucket", "first", "last"):
        size = draw(st.integers(1, 7))
    return ("coarsen", name, form, size)


@st.composite
def row_rules(draw: st.DrawFn, to: str) -> dict:
    """Make a rule for rows, in which every attribute leaves at most once."""
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), unique=True, min_size=1))
    clauses: list[tuple] = []
    for name in names:
        if KINDS[name] in TO and draw(st.booleans()):
            clauses.append(draw(coarsenings(name)))
        else:
            clauses.append(("keep", name))
    for number in range(draw(st.integers(0, 2))):
        scope = draw(st.sampled_from([None, "study", "domain", 'study("shared")', 'domain("registry")']))
        clauses.append(("add", f"p{number}", draw(st.sampled_from(NAMING)), scope))
    return {"to": to, "by": [], "clauses": draw(st.permutations(clauses))}


@st.composite
def count_rules(draw: st.DrawFn, to: str) -> dict:
    """Make a rule for counts."""
    by = draw(st.lists(st.sampled_from(sorted(KINDS)), unique=True, min_size=1, max_size=3))
    clauses: list[tuple] = [draw(coarsenings(name)) for name in by if KINDS[name] in TO and draw(st.booleans())]
    if draw(st.booleans()):
        clauses.append(("least", draw(st.integers(1, 5)), draw(st.sampled_from(sorted(KINDS)))))
    return {"to": to, "by": by, "clauses": clauses}


@st.composite
def rule_sets(draw: st.DrawFn) -> list[dict]:
    """Make rules for some destinations: at most one for rows and one for counts each."""
    rules = []
    for to in draw(st.lists(PLACES, unique=True, min_size=1)):
        if draw(st.booleans()):
            rules.append(draw(row_rules(to)))
        if draw(st.booleans()):
            rules.append(draw(count_rules(to)))
    return draw(st.permutations(rules))


def batches_of(rows: list[dict], cuts: list[int]) -> list[pa.RecordBatch]:
    """Put rows into batches, cut wherever."""
    schema = pa.schema([pa.field(name, arrow_type(kind)) for name, kind in TYPES.items()])
    edges = sorted({0, len(rows), *(cut % (len(rows) + 1) for cut in cuts)})
    return [pa.RecordBatch.from_pylist(rows[low:high], schema=schema) for low, high in pairwise(edges)]


def renamed(rows: list[dict], tree: release.ReleaseTree) -> list[dict]:
    """Name pseudonyms, the oracle's or real ones, by the order in which they appear."""
    names: dict[object, str] = {}
    hidden = {column.name for column in tree.columns if column.scope is not None}
    return [
        {
            name: names.setdefault(value, f"#{len(names)}") if name in hidden and value is not None else value
            for name, value in ((name, row[name]) for name, _ in tree.attributes)
        }
        for row in rows
    ]


def ordered(rows: list[dict]) -> list[dict]:
    """Put rows into one order."""
    return sorted(rows, key=repr)


@given(
    rules=rule_sets(),
    rows=ROWS,
    cuts=st.lists(st.integers(0, 25), max_size=3),
    secret=st.binary(min_size=32, max_size=32),
)
def test_what_leaves_is_what_a_second_implementation_lets_leave(
    rules: list[dict], rows: list[dict], cuts: list[int], secret: bytes
) -> None:
    """Random rules on random rows, for every destination and one that has no rule."""
    parsed = release.parse_releases(written(rules))
    for to in ("registry", 'study("bladder-7")', 'study("lung-1")', "nobody"):
        trees = release.compile_releases(parsed, release.parse_destination(to), TYPES)
        wanted = leaves(rules, to, rows)
        assert len(trees) == len(wanted)
        for tree, expected in zip(trees, wanted, strict=True):
            made = [
                row
                for batch in release.release_batches(tree, batches_of(rows, cuts), secret)
                for row in batch.to_pylist()
            ]
            pair = [ordered(made), ordered(expected)] if tree.counts else [made, expected]
            assert renamed(pair[0], tree) == renamed(pair[1], tree)


@given(rules=rule_sets())
def test_formatting_keeps_the_rules_and_is_done_after_once(rules: list[dict]) -> None:
    """What the formatter writes reads as the same rules, and stays as it is."""
    text = written(rules)
    once = release.format_releases(text)
    assert [str(rule) for rule in release.parse_releases(once)] == [str(rule) for rule in release.parse_releases(text)]
    assert release.format_releases(once) == once


WORDS = st.lists(
    st.sampled_from(
        ["release", "counts", "of", "by", "to", "keep", "drop", "coarsen", "add", "at least", "T", "a", "b", "study",
         "(", ")", ",", "=", "pseudonym", "scope", "10", "bucket", "month", '"x y"', "# note\n", "\n"]
    ),
    max_size=30,
).map(" ".join)  # fmt: skip


@given(text=st.one_of(st.text(max_size=60), WORDS, st.binary(max_size=60).map(lambda raw: raw.decode("latin-1"))))
def test_whatever_is_read_raises_nothing_but_maia_errors(text: str) -> None:
    """A text is rules, or an error with a place inside it; formatting what reads keeps every comment."""
    try:
        rules = release.parse_releases(text)
    except MaiaError as error:
        assert getattr(error, "line", 1) <= text.count("\n") + 1  # noqa: PT017 - the place is the claim
        return
    release.check_releases(rules, {"T": TYPES})
    formatted = release.format_releases(text)
    assert [str(rule) for rule in release.parse_releases(formatted)] == [str(rule) for rule in rules]
    assert release.format_releases(formatted) == formatted


@given(
    values=st.lists(st.text(string.ascii_letters + string.digits, max_size=12), min_size=1, unique=True),
    one=st.text(min_size=1, max_size=8), other=st.text(min_size=1, max_size=8),
    secret=st.binary(min_size=32, max_size=32), second=st.binary(min_size=32, max_size=32),
)  # fmt: skip
def test_pseudonyms_link_within_a_study_and_nothing_else(
    values: list[str], one: str, other: str, secret: bytes, second: bytes
) -> None:
    """Equal within a study and over types; different over studies, attributes and secrets; never the value."""
    assume(one != other and secret != second)

    def made(study: str, attribute: str = "id", key: bytes = secret) -> list[str]:
        to = release.Destination(release.DestinationKind.STUDY, study)
        rule = release.ReleaseRule(event_type="T", to=to, clauses=release.parse_releases(
            f"release T to x add p = pseudonym({attribute})")[0].clauses)  # fmt: skip
        (tree,) = release.compile_releases([rule], to, {attribute: parse_attribute_type("string")})
        batch = pa.RecordBatch.from_pydict({attribute: values})
        return [row["p"] for out in release.release_batches(tree, [batch], key) for row in out.to_pylist()]

    mine = made(one)
    assert mine == made(one)
    assert len(set(mine)) == len(values)
    everybody = [*mine, *made(other), *made(one, "number"), *made(one, key=second)]
    assert len(set(everybody)) == 4 * len(values)
    assert all(len(item) == 32 and item not in values for item in everybody)


ZONES = {"UTC": "UTC", "far east": "Pacific/Kiritimati", "far west": "Pacific/Pago_Pago"}


@pytest.mark.parametrize("zone", ZONES.values(), ids=ZONES)
def test_months_are_those_of_utc(zone: str) -> None:
    """A batch that shows times in another zone, as Spark's do, gives the same months."""
    at = datetime(2010, 1, 31, 23, 30, tzinfo=UTC)
    (tree,) = release.compile_releases(
        release.parse_releases("release T to x coarsen seen to month"), release.parse_destination("x"), TYPES
    )
    shown = pa.array([at, at.astimezone(timezone(timedelta(hours=14)))], type=pa.timestamp("us", tz=zone))
    (out,) = release.release_batches(tree, [pa.RecordBatch.from_arrays([shown], names=["seen"])])
    assert out.to_pylist() == [{"seen": "2010-01"}] * 2


def test_a_rounded_decimal_keeps_every_digit_before_the_point() -> None:
    """Rounding up may need one digit more than the type has; the released type has it."""
    kinds = {"cost": parse_attribute_type("decimal(3,2)")}
    (tree,) = release.compile_releases(
        release.parse_releases("release T to x coarsen cost to decimals(0)"), release.parse_destination("x"), kinds
    )
    batch = pa.RecordBatch.from_arrays([pa.array([Decimal("9.99")], type=pa.decimal128(3, 2))], names=["cost"])
    (out,) = release.release_batches(tree, [batch])
    assert out.to_pylist() == [{"cost": Decimal(10)}]
