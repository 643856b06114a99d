"""The command `maia`."""
