"""`maia who-can`: the steps that events went through."""
