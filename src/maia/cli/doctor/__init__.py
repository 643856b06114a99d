"""`maia doctor`: what this installation has, and whether a home is in order."""
