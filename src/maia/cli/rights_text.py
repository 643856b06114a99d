"""The old name of `maia.cli.read.rights`, until both halves of the command line have moved."""

from maia.cli.read.rights import *  # noqa: F403
