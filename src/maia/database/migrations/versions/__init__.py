"""One file a migration, each naming the one before it."""
