"""The old name of `maia.cli.show.certificates`, until both halves of the command line have moved."""

from maia.cli.show.certificates import *  # noqa: F403
