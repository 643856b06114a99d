"""The old name of `maia.cli.show.rights`, until both halves of the command line have moved."""

from maia.cli.show.rights import *  # noqa: F403
