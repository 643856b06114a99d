"""`maia directory`: unique names for objects and principals."""
