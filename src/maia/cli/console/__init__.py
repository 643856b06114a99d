"""`maia console`."""
