"""`maia client publish|subscribe`: a client of a domain's gateway, without Spark and without the domain's home."""
