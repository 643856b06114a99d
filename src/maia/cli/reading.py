"""The old name of `maia.cli.read.files`, until both halves of the command line have moved."""

from maia.cli.read.files import *  # noqa: F403
