"""`maia policy test`: assertions on who can and who cannot, run as the checks of a repository are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from xml.sax.saxutils import escape, quoteattr

import typer

from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.options import examples, new_app
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import printable, write_json, write_line
from maia.encoding import counted

if TYPE_CHECKING:
    from maia.domain import PolicyCoverage, PolicyReport

app = new_app()
_WIDTH = 80


@app.command(
    "test",
    epilog=examples(
        "maia policy test",
        "maia policy test wards.toml --at 2026-12-31",
        "maia policy test --junit policy.xml",
        "maia policy test --json | jq '.coverage.untouched_rules[]'",
    ),
)
@unpacked
def run_tests(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Files of tests (TOML); policy/tests/*.toml when left out."),
    ] = None,
    *,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write the results as JUnit XML as well.")
    ] = None,
    covered: Annotated[
        bool, typer.Option("--covered", help="Fail as well when a certificate or rule is touched by no test.")
    ] = False,
    place: CommandPlace,
) -> int:
    """Run policy tests: assertions on who can and who cannot see or publish what; exits 1 when one does not hold.

    A failure says what was expected, and the proof or the missing link that was found. What cannot be told fails,
    whichever way it was asserted. Below stands which certificates and rules no test touches. Nothing is changed.
    """
    import maia
    from maia.cli.read.files import write_target
    from maia.cli.read.instants import parse_instant_text
    from maia.domain import paths_of_tests, run_policy_tests

    report = run_policy_tests(
        maia.open(place.home), paths_of_tests(place.home, files or ()), at=place.instant,
        instant=lambda text: parse_instant_text(text, at=place.instant),
    )  # fmt: skip
    coverage = report.coverage
    whole = not (coverage.untouched_certificates or coverage.untouched_rules)
    code = ExitCode.DONE if report and (whole or not covered) else ExitCode.FAILED
    if junit is not None:
        write_target(junit, _junit(report).encode())
    if place.json:
        write_json(
            {"passed": len(report.outcomes) - len(report.failed), "failed": len(report.failed),
             "outcomes": [one.to_json() for one in report.outcomes],
             "coverage": {"certificates": coverage.certificates, "rules": coverage.rules,
                          "untouched_certificates": list(coverage.untouched_certificates),
                          "untouched_rules": list(coverage.untouched_rules)}},
            code=code,
        )  # fmt: skip
        return code
    dots = "".join("." if one.passed else "F" for one in report.outcomes)
    for start in range(0, len(dots), _WIDTH):
        write_line(dots[start : start + _WIDTH])
    for one in report.failed:
        write_line(printable(str(one)))
    _tell(coverage)
    passed = len(report.outcomes) - len(report.failed)
    write_line(f"{counted(passed, 'assertion')} held, {len(report.failed)} failed")
    return code


def _tell(coverage: PolicyCoverage) -> None:
    for what, total, left in (
        ("certificate", coverage.certificates, coverage.untouched_certificates),
        ("rule", coverage.rules, coverage.untouched_rules),
    ):
        for line in left:
            write_line(printable(f"no test touches {what} {line}"))
        if total:
            write_line(f"tests touch {total - len(left)} of {counted(total, what)}")


def _junit(report: PolicyReport) -> str:
    """Write what programs that collect test results read."""
    cases = []
    for one in report.outcomes:
        name = printable(f"{one.test or one.line}: {one.asserted}")
        said = "" if one.passed else f"<failure type={quoteattr(one.code)}>{escape(printable(str(one)))}</failure>"
        cases.append(f"<testcase classname={quoteattr(one.file)} name={quoteattr(name)}>{said}</testcase>")
    head = f'<testsuite name="maia policy test" tests="{len(report.outcomes)}" failures="{len(report.failed)}">'
    return '<?xml version="1.0" encoding="utf-8"?>\n' + "\n".join([head, *cases, "</testsuite>", ""])
