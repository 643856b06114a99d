"""`maia name`: give principals local names."""
