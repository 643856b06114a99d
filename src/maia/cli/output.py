"""The old name of `maia.cli.show.output`, until both halves of the command line have moved."""

from maia.cli.show.output import *  # noqa: F403
