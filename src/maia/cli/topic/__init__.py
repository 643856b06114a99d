"""`maia topic define|show|grant`: topics, and rights on them."""
