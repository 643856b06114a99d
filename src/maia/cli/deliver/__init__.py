"""`maia deliver`: fill the sealed outbox of a domain's subscriptions, keep them, and read one as its client."""
