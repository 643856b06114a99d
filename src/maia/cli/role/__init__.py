"""`maia role activate|deactivate|list|appoint|observe|revoke`: roles of a domain's members, and what they stand on."""
