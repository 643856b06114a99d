"""Releases between domains: the rules of a home, what they let out, and what was let out to whom."""

from __future__ import annotations

import typing as _typing

from maia.lazy import on_first_use as _on_first_use

if _typing.TYPE_CHECKING:
    from maia.domain.releases.abandonment import abandon_begun
    from maia.domain.releases.agreed import agreed_attributes
    from maia.domain.releases.application import Released, apply_release, entry_to_json, release_trees
    from maia.domain.releases.direct import check_direct, check_no_direct
    from maia.domain.releases.files import check_release_files, format_release_file, release_paths, release_texts
    from maia.domain.releases.output import check_output
    from maia.domain.releases.preview import ReleasePreview, preview_release, sample_rows
    from maia.domain.releases.released_type import DefinedRelease, define_released

__all__ = [
    "DefinedRelease",
    "ReleasePreview",
    "Released",
    "abandon_begun",
    "agreed_attributes",
    "apply_release",
    "check_direct",
    "check_no_direct",
    "check_output",
    "check_release_files",
    "define_released",
    "entry_to_json",
    "format_release_file",
    "preview_release",
    "release_paths",
    "release_texts",
    "release_trees",
    "sample_rows",
]

__getattr__ = _on_first_use(
    __name__,
    {
        "DefinedRelease": "released_type",
        "abandon_begun": "abandonment",
        "agreed_attributes": "agreed",
        "check_direct": "direct",
        "check_no_direct": "direct",
        "check_release_files": "files",
        "define_released": "released_type",
        "format_release_file": "files",
        "release_paths": "files",
        "release_texts": "files",
        "Released": "application",
        "apply_release": "application",
        "entry_to_json": "application",
        "release_trees": "application",
        "check_output": "output",
        "ReleasePreview": "preview",
        "sample_rows": "preview",
        "preview_release": "preview",
    },
)
