"""`maia cert`: show certificates."""
