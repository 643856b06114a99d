"""`maia keys`: the key groups that a home manages, and those that its broker joins."""
