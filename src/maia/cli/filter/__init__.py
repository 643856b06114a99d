"""`maia filter`: check, format, compare and explain filters."""
