"""`maia login`."""
