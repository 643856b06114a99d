"""The demonstrations that `maia demo` plays, with real keys and real Spark."""

from maia.demo.command import app

__all__ = ["app"]
