"""The verb `handler`: code on image streams, in sandboxes."""
