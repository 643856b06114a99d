"""`maia audit`: who published, saw or was refused what."""
