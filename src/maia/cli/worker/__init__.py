"""`maia worker`: name the machines that run the tasks of a domain."""
