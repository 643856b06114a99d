"""`maia subscribe`: see the events of a type as a client may see them."""
