"""`maia trace`: the steps that events went through."""
