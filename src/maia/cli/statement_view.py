"""The old name of `maia.cli.show.statements`, until both halves of the command line have moved."""

from maia.cli.show.statements import *  # noqa: F403
