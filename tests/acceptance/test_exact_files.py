"""What a file says is published as it says it, or refused by its column: no decimal is rounded, no zone is guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from maia.testing import Command

CELLS = {
    # what is written: what is published, or the column that refuses its row
    "2.205": "p", "1.005": "p", "-0.004": "p", "1e-3": "p", "12345678.001": "p", "123456789.00": "p", "1,5": "p",
    "x": "p", "2.20": "2.20", "2.2000": "2.20", "-7": "-7.00", "1.5e1": "15.00", "250e-1": "25.00", "0.000": "0.00",
    "12345678.91": "12345678.91",
}  # fmt: skip
FINE = sorted(value for value in CELLS.values() if value != "p")
BAD = len(CELLS) - len(FINE)


@pytest.fixture
def shop(spark: Any, tmp_path: Path) -> Command:
    """Make a home with two types: one that CSV holds, and one with parts."""
    made = Command(tmp_path / "shop")
    made.do("domain", "init", str(made.home), "--key")
    made.keys("till")
    made.do("type", "define", "domain/Sale@1", *_flags("p:decimal(10,2)", "n:integer", "t:timestamp"))
    parts = ("p:decimal(10,2)", "s:struct<y:decimal(5,1)>", "a:array<decimal(5,1)>", "b:array<integer>")
    made.do("type", "define", "domain/Parts@1", *_flags(*parts))
    for who in ("broker", "till"):
        for name in ("Sale", "Parts"):
            right = ("--type", f"domain/{name}", "--action", "publish,subscribe")
            made.grant("--from", "domain", "--to", who, *right)
    return made


def _flags(*attributes: str) -> list[str]:
    return [flag for item in attributes for flag in ("--attribute", item)]


def _publish(shop: Command, file: Path, type_: str, *flags: str) -> Any:
    return shop("publish", str(file), "--type", type_, "--as", "till", "--json", *flags)


def _refused(ran: Any) -> dict[str | None, int]:
    assert {item["code"] for item in ran.data["refused"]} == {"ROW_MALFORMED"}
    return {item["column"]: item["rows"] for item in ran.data["refused"]}


def _read(shop: Command, type_: str, column: str) -> list[str]:
    ran = shop("subscribe", "--type", type_, "--as", "till", "--json")
    return sorted(str(json.loads(line)[column]) for line in ran.out.splitlines())


@pytest.mark.spark
@pytest.mark.slow
def test_no_decimal_of_a_csv_file_is_rounded_and_the_column_at_fault_is_named(shop: Command, tmp_path: Path) -> None:
    """A decimal with too many digits refuses its row, as do other cells; a time without a zone names the way out."""
    file = tmp_path / "sales.csv"
    file.write_text("n,p\n" + "".join(f'1,"{cell}"\n' for cell in CELLS) + "one,2.00\n1,2.00,3\n", "utf-8")
    ran = _publish(shop, file, "Sale")
    assert (ran.code, ran.data["events"]) == (0, len(FINE)), ran.err
    assert _refused(ran) == {"p": BAD, "n": 1, None: 1}
    assert _read(shop, "Sale", "p") == FINE
    # one fault, one code and one exit code, whether all is refused or none may be
    file.write_text("t,n\n2026-06-01T08:00:00,1\n2026-06-01 09:00,2\n", "utf-8")
    ran = _publish(shop, file, "Sale")
    assert (ran.code, _refused(ran)) == (1, {"t": 2})
    assert "times without a zone in `t`: say of which zone they are with --naive-timestamps" in ran.err
    ran = _publish(shop, file, "Sale", "--strict")
    assert (ran.code, ran.data["error"]) == (1, "ROW_MALFORMED")
    assert "ROW_MALFORMED in `t`" in ran.data["message"]
    assert "--naive-timestamps" in ran.data["message"]
    assert "maia audit" in ran.data["hint"]


@pytest.mark.spark
@pytest.mark.slow
def test_no_decimal_of_json_lines_is_rounded_not_inside_a_struct_or_an_array(shop: Command, tmp_path: Path) -> None:
    """As numbers and as texts; a part that is no value of its type refuses its column too."""
    rows = [f'{{"p": "{cell}"}}' for cell in CELLS]
    rows += [f'{{"p": {cell}}}' for cell in CELLS if cell not in ("x", "1,5")]
    rows += ['{"s": {"y": 2.25}}', '{"s": {"y": "q"}}', '{"a": [1.5, 2.25]}', '{"b": [1, "x"]}', '{"q": 1}', "[1]"]
    rows += ['{"s": {"y": 2.50}, "a": [1.5, "2.20"], "b": [1], "p": 0}']
    file = tmp_path / "parts.json"
    file.write_text("\n".join(rows), "utf-8")
    ran = _publish(shop, file, "Parts")
    assert _refused(ran) == {"p": 2 * BAD - 2, "s": 2, "a": 1, "b": 1, None: 2}
    assert _read(shop, "Parts", "p") == sorted([*FINE, *FINE, "0.00"])
