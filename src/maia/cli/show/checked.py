"""What was found in files of rules, and which files were written anew: told alike for every language of rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from maia.cli.show.exits import ExitCode
from maia.cli.show.output import note, printable, write_json, write_line
from maia.encoding import counted

if TYPE_CHECKING:
    from maia.policy import PolicyFinding, release


def tell_findings(
    found: Sequence[tuple[str, PolicyFinding | release.ReleaseFinding]], *, files: int, json: bool
) -> int:
    """Tell what is wrong with files, with file, line and column; a failure when there is an error."""
    from maia.policy import Severity

    errors = sum(finding.severity is Severity.ERROR for _, finding in found)
    code = ExitCode.FAILED if errors else ExitCode.DONE
    if json:
        rows = [
            {"file": name, "line": item.line, "column": item.column, "severity": item.severity.value,
             "finding": item.code, "message": item.message}
            for name, item in found
        ]  # fmt: skip
        write_json({"findings": rows}, code=code)
        return code
    for name, finding in found:
        write_line(printable(f"{name}: {finding}"))
    note(", ".join((counted(files, "file"), counted(errors, "error"), counted(len(found) - errors, "warning"))))
    return code


def tell_formatted(changed: Sequence[Path], *, files: int, check_only: bool, json: bool) -> int:
    """Tell which files were written anew; a failure when they were only looked at and some would be."""
    code = ExitCode.FAILED if check_only and changed else ExitCode.DONE
    if json:
        write_json({"changed": [str(path) for path in changed], "files": files}, code=code)
        return code
    for path in changed:
        write_line(printable(str(path)))
    note(f"{len(changed)} of {counted(files, 'file')} {'would change' if check_only else 'changed'}")
    return code
