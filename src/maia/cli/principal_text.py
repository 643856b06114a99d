"""The old name of `maia.cli.read.principals`, until both halves of the command line have moved."""

from maia.cli.read.principals import *  # noqa: F403
from maia.cli.show.principals import *  # noqa: F403
