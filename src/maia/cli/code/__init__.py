"""`maia code`: the code repository of a home."""
