"""`maia prove`: find the certificates that prove a right."""
