"""`maia key`: make, show and import keys."""
