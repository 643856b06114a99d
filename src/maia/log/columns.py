"""The columns that Maia adds to frames. Names of attributes never begin with an underscore's neighbour: these do."""

from __future__ import annotations

EVENT = "_event"
"""Which event: the name of its parcel's events and its position among them; the same after every retry."""
STAMP = "_stamp"
"""When its broker stamped it, in milliseconds since 1970 UTC."""
SUBSCRIPTION = "_subscription"
"""Whose delivery a row is."""
REFUSED = "_refused"
"""Why a row or parcel goes no further; null where it does."""
COUNT = "_count"
"""How many events a refusal stands for."""
