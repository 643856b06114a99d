"""The old name of `maia.cli.read.lines`, until both halves of the command line have moved."""

from maia.cli.read.lines import *  # noqa: F403
