"""`maia publish`: send the rows of a file, or of standard input, as events."""
