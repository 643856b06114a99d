"""A relay as a process of its own: reads a log, verifies every parcel, copies it, and waits to be looked into.

Usage: relay_process.py LOG TARGET [HOME]. With a home it opens what that home may open, as the control of the hunt.
"""

from __future__ import annotations

import sys
from pathlib import Path

from maia.encryption import parse_parcel, verify_parcel
from maia.log import LogDirectory


def main(source: Path, target: Path, home: str | None) -> None:
    """Carry everything, then say so and wait."""
    log, kept = LogDirectory(source), []
    for commit in log.commits():
        for file in commit.files:
            for logged in log.parcels(commit.lane, file):
                parcel = logged.parse().to_bytes()
                verify_parcel(parse_parcel(parcel))
                kept.append(parcel)
                with (target / f"{len(kept)}.parcel").open("wb") as copy:
                    copy.write(parcel)
    if home is not None:
        from network import CCS_SUBSCRIPTIONS

        from maia.domain import Domain, delivery_job

        job = delivery_job(Domain.open(home), CCS_SUBSCRIPTIONS)
        job.run_here()
        kept += list(job.outbox.read("billing", job.make_secret()))
    sys.stdout.write(f"carried {len(kept)}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
