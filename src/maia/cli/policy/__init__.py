"""`maia policy check|format|bounds|preview|apply|explain`: the rules of a domain, kept as text in `policy/*.rules`."""
