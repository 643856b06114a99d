"""The old name of `maia.cli.read.ages`, until both halves of the command line have moved."""

from maia.cli.read.ages import *  # noqa: F403
