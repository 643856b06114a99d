"""A second reading of release rules: plain Python over dictionaries, sharing nothing with `maia.policy.release`.

Rules are made here as lists of tuples, written to text by `written`, and applied by `leaves`, which knows only what the
reference page says. Pseudonyms are the pair of scope and value, which has to be renamed one to one.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Decimal

KINDS = {
    "ward": "string", "plate": "string", "place": "string", "age": "integer", "lat": "float", "cost": "decimal(12,4)",
    "born": "date", "seen": "timestamp", "blob": "binary", "alive": "boolean",
}  # fmt: skip
TO = {
    "string": ("first", "last", "decimals"), "integer": ("bucket",), "float": ("bucket", "decimals"),
    "decimal(12,4)": ("bucket", "decimals"), "date": ("month", "year"), "timestamp": ("month", "year"),
}  # fmt: skip


def written(rules: list[dict]) -> str:
    """Write rules as text."""
    lines = []
    for rule in rules:
        if rule["by"]:
            lines.append(f"release counts of T by {', '.join(rule['by'])} to {rule['to']}")
        else:
            lines.append(f"release T to {rule['to']}")
        for word, *rest in rule["clauses"]:
            if word == "keep":
                lines.append(f"  keep {', '.join(rest)}")
            elif word == "coarsen":
                name, form, size = rest
                lines.append(f"  coarsen {name} to {form}" + ("" if size is None else f"({size})"))
            elif word == "add":
                name, source, scope = rest
                lines.append(f"  add {name} = pseudonym({source}{'' if scope is None else f', scope = {scope}'})")
            else:
                lines.append(f"  at least {rest[0]} {rest[1]}")
    return "\n".join(lines)


def coarse(value: object, form: str, size: int | None) -> object:
    """Coarsen one value, by the book."""
    if value is None:
        return None
    if form in ("month", "year"):
        day = value.astimezone(UTC) if isinstance(value, datetime) else value
        assert isinstance(day, date)
        return day.isoformat()[:7] if form == "month" else day.isoformat()[:4]
    assert size is not None
    if form == "first":
        return "".join(list(str(value))[:size])
    if form == "last":
        return "".join(list(str(value))[max(0, len(str(value)) - size) :])
    if form == "bucket":
        exact = Decimal(value)
        low = 0
        while Decimal(low) > exact:
            low -= size
        while Decimal(low + size) <= exact:
            low += size
        return f"{low}-{low + size - 1}" if type(value) is int else f"{low}-{low + size}"
    if isinstance(value, str):
        parts = value.split(",")
        if any(part.strip().lstrip("+-").startswith(".") or part.strip().endswith(".") for part in parts):
            return None  # a number has digits on both sides of its point
        try:
            numbers = [Decimal(part) for part in parts]
        except ArithmeticError:
            return None
        return ",".join(f"{nearest(number, size):f}" for number in numbers)
    rounded = nearest(Decimal(value), size)
    return float(rounded) if isinstance(value, float) else rounded


def nearest(number: Decimal, size: int) -> Decimal:
    """Round to the nearest, a half to the even one; there is no negative zero."""
    rounded = number.quantize(Decimal((0, (1,), -size)), rounding=ROUND_HALF_EVEN)
    return abs(rounded) if rounded == 0 else rounded


def leaves(rules: list[dict], to: str, rows: list[dict]) -> list[list[dict]]:
    """Give what leaves to a destination: rows if there is a rule for rows, and counts if there is one for counts."""
    out = []
    clauses = [clause for rule in rules if rule["to"] == to and not rule["by"] for clause in rule["clauses"]]
    if clauses:
        out.append([row_that_leaves(clauses, to, row) for row in rows])
    return out + [counts_that_leave(rule, rows) for rule in rules if rule["to"] == to and rule["by"]]


def row_that_leaves(clauses: list[tuple], to: str, row: dict) -> dict:
    """Apply the clauses of rows to one row."""
    made: dict[str, object] = {}
    for word, *rest in clauses:
        if word == "keep":
            made.update({name: row[name] for name in rest})
        elif word == "coarsen":
            made[rest[0]] = coarse(row[rest[0]], rest[1], rest[2])
        elif word == "add":
            name, source, scope = rest
            where = to if scope in (None, "study", "domain") else scope
            where = "registry" if where == 'domain("registry")' else where  # two ways to write one
            made[name] = None if row[source] is None else ("pseudonym", where, source, row[source])
    return made


def counts_that_leave(rule: dict, rows: list[dict]) -> list[dict]:
    """Count groups, and leave out those with too few people."""
    how = {rest[0]: rest[1:] for word, *rest in rule["clauses"] if word == "coarsen"}
    minimum = next(((n, who) for word, *rest in rule["clauses"] if word == "least" for n, who in [rest]), None)
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        key = tuple(coarse(row[name], *how[name]) if name in how else row[name] for name in rule["by"])
        key = tuple(abs(item) if isinstance(item, float) and item == 0 else item for item in key)
        groups.setdefault(key, []).append(row)
    found = []
    for key, members in groups.items():
        people = set() if minimum is None else {row[minimum[1]] for row in members} - {None}
        if minimum is None or len(people) >= minimum[0]:
            found.append({**dict(zip(rule["by"], key, strict=True)), "count": len(members)})
    return found
