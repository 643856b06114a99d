"""`maia verify`: replay a proof, or check certificates."""
