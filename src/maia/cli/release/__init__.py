"""The verb `maia release`."""
