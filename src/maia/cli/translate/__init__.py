"""`maia translate`: a client between two types."""
