"""Maia: one shared stream of events, every right a capability, every cell explained."""

from maia.version import __version__

__all__ = ["__version__"]
