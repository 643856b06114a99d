"""`maia advertise`: what clients say that they will publish."""
