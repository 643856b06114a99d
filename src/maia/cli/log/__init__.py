"""`maia log show|compact|expire|sweep`: look at a home's log and keep it in order."""
