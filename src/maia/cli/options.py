"""The old name of `maia.cli.read.options`, until both halves of the command line have moved."""

from maia.cli.read.options import *  # noqa: F403
