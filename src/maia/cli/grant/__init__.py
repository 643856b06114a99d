"""`maia grant`: issue a capability, and refuse what is useless."""
