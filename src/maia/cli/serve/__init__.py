"""`maia serve key-manager|acs|gateway|log`: run a service of a home until it is told to stop."""
