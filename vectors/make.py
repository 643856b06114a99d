"""Makes the test vectors anew. A rerun changes nothing; ``--check`` exits with 1 and shows what would change.

Keys come from seeds that the README names, signatures are deterministic, and the expected results are written down in
``cases_*.py``: they are claims, which tests/unit/test_vectors.py holds against the code.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from pathlib import Path

import cases_certificates
import cases_chains
import cases_keys
import cases_names
import cases_sexp
import cases_speech
import cases_statements
import cases_tags
from builders import number

HERE = Path(__file__).resolve().parent
FAMILIES = {
    "sexp": cases_sexp,
    "keys": cases_keys,
    "certificates": cases_certificates,
    "tags": cases_tags,
    "names": cases_names,
    "chains": cases_chains,
    "statements": cases_statements,
    "speech": cases_speech,
}


def render(family: str) -> str:
    """Write one family as JSON, the same octets every time."""
    module = FAMILIES[family]
    content = {"family": family, "about": module.ABOUT, "cases": number(family, module.cases())}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Write the files, or compare them."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    options.add_argument("--check", action="store_true", help="change nothing; exit with 1 if something would change")
    check = options.parse_args().check
    changed = total = failing = 0
    for family in FAMILIES:
        path, fresh = HERE / f"{family}.json", render(family)
        stored = path.read_text("utf-8") if path.is_file() else ""
        cases = json.loads(fresh)["cases"]
        total, failing = total + len(cases), failing + sum(case["must_fail"] for case in cases)
        if stored == fresh:
            continue
        changed += 1
        if check:
            lines = difflib.unified_diff(
                stored.splitlines(), fresh.splitlines(), path.name, "made anew", lineterm="", n=1
            )
            print("\n".join(line[:160] for line in lines))
        else:
            path.write_text(fresh, "utf-8")
    verb = "would change" if check else "changed"
    print(f"{total} vectors, {failing} must fail; {changed} of {len(FAMILIES)} files {verb}")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
