"""`maia explain`: why somebody may do something, or what is missing."""
