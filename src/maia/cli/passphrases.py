"""The old name of `maia.cli.read.passphrases`, until both halves of the command line have moved."""

from maia.cli.read.passphrases import *  # noqa: F403
