"""`maia domain init|invite|join|members|agree`: the home of a domain, its members, and other domains."""
