"""Links: what a domain copies into its own log from logs that others serve."""

from maia.domain.link_files import Link, LinkStatus, add_link, find_link, link_status, read_links, remove_link
from maia.domain.links.direct import DirectLanes, check_direct_object, direct_lanes
from maia.domain.links.filters import (
    MAX_FILTERS,
    WeighedFilter,
    seal_filters,
    told_on,
    weigh_filters,
)
from maia.domain.links.rounds import LinkRound, note_failure, pull_link
from maia.domain.links.unwanted import unwanted_segments

__all__ = [
    "MAX_FILTERS",
    "DirectLanes",
    "Link",
    "LinkRound",
    "LinkStatus",
    "WeighedFilter",
    "add_link",
    "check_direct_object",
    "direct_lanes",
    "find_link",
    "link_status",
    "note_failure",
    "pull_link",
    "read_links",
    "remove_link",
    "seal_filters",
    "told_on",
    "unwanted_segments",
    "weigh_filters",
]
