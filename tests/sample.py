"""Which of the long tests a run of CI takes: a share of them, chosen by the commit, so that all come in turn.

Only tests outside tests/acceptance are left to chance: no requirement row hangs on them, and `make test` runs them all.
"""

from __future__ import annotations

import hashlib

FOLDERS = ("tests/adversary/", "tests/faults/", "tests/scenarios/", "tests/spark/")
"""What is sampled; what stands elsewhere, or is marked `always`, is always taken."""


def taken(nodeid: str, *, one_in: int, seed: str) -> bool:
    """Tell whether a run takes a test."""
    if one_in <= 1 or not nodeid.startswith(FOLDERS):
        return True
    digest = hashlib.sha256(f"{seed}\n{nodeid}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % one_in == 0
