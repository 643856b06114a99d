"""`maia serve key-manager|acs`: run a service of a home until it is told to stop."""
