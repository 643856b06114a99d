"""The verb `maia network`: several domains on one machine, each with processes of its own."""
