"""The old name of `maia.cli.read.signers`, until both halves of the command line have moved."""

from maia.cli.read.signers import *  # noqa: F403
