"""The old name of `maia.cli.read.instants`, until both halves of the command line have moved."""

from maia.cli.read.instants import *  # noqa: F403
