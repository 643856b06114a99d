"""What lies in a log, sealed as its origins sealed it; for tests that look at octets."""

from __future__ import annotations

from maia.encryption import Parcel, parse_parcel
from maia.home import Home
from maia.log import LogDirectory


def sealed_here(home: Home) -> list[Parcel]:
    """Give all parcels of a home's log, each in one piece, in the order of their stamps."""
    log = LogDirectory(home.log_store)
    found = [
        parse_parcel(logged.parse().to_bytes())  # a segment is closed behind its last parcel
        for commit in log.commits()
        for file in commit.files
        for logged in log.parcels(commit.lane, file)
    ]
    return sorted(found, key=lambda parcel: parcel.header.stamp)
