"""The old name of `maia.cli.read.events`, until both halves of the command line have moved."""

from maia.cli.read.events import *  # noqa: F403
