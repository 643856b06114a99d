"""`maia compare`: the steps that events went through."""
