"""`maia status`: what this domain is, what it has and lacks, and what to do next."""
