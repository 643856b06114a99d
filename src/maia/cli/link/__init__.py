"""`maia link add|pull|status|remove`: copy logs that other domains serve into the own one."""
