"""`maia credential`: the credentials of the overlay, a view on certificates."""
