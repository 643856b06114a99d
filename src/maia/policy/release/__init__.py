"""Releases between domains: for each destination and type what leaves, how precisely, and in groups of what size."""

from __future__ import annotations

import typing as _typing

from maia.lazy import on_first_use as _on_first_use
from maia.policy.release.checking import ReleaseFinding, check_releases
from maia.policy.release.formatting import format_releases
from maia.policy.release.language import parse_destination, parse_releases, release_grammar
from maia.policy.release.pseudonyms import SECRET_LENGTH, order_key, row_places
from maia.policy.release.rules import Destination, DestinationKind, ReleaseRule, show_name
from maia.policy.release.tree import COUNT, ReleasedColumn, ReleaseTree, compile_releases

if _typing.TYPE_CHECKING:
    from maia.policy.release.columns import (
        count_batches,
        count_rows,
        count_schema,
        finish_counts,
        number_of_groups,
        pseudonym_keys,
        release_batches,
        release_rows,
        released_schema,
    )

__all__ = [
    "COUNT",
    "SECRET_LENGTH",
    "Destination",
    "DestinationKind",
    "ReleaseFinding",
    "ReleaseRule",
    "ReleaseTree",
    "ReleasedColumn",
    "check_releases",
    "compile_releases",
    "count_batches",
    "count_rows",
    "count_schema",
    "finish_counts",
    "format_releases",
    "number_of_groups",
    "order_key",
    "parse_destination",
    "parse_releases",
    "pseudonym_keys",
    "release_batches",
    "release_grammar",
    "release_rows",
    "released_schema",
    "row_places",
    "show_name",
]

__getattr__ = _on_first_use(
    __name__,
    dict.fromkeys(
        (
            "count_batches", "count_rows", "count_schema", "finish_counts", "number_of_groups", "pseudonym_keys",
            "release_batches", "release_rows", "released_schema",
        ),
        "columns",
    ),
)  # fmt: skip
