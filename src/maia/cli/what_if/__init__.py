"""`maia what-if`: the steps that events went through."""
