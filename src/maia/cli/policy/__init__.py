"""`maia policy check|format|preview|apply|explain`: the rules of a domain, kept as text in `policy/*.rules`."""
