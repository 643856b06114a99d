"""The old name of `maia.cli.show.exits`, until both halves of the command line have moved."""

from maia.cli.show.exits import *  # noqa: F403
