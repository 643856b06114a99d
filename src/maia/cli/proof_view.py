"""The old name of `maia.cli.show.proofs`, until both halves of the command line have moved."""

from maia.cli.show.proofs import *  # noqa: F403
