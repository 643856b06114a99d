"""`maia type`: event types and their versions."""
