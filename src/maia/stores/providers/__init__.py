"""Providers of environment facts that look outside: databases, files, services, flags; and the home's surroundings."""

from maia.stores.providers.configuration import PROVIDERS_FILE, ProviderConfig, read_providers
from maia.stores.providers.emergency import EmergencyChange, EmergencyFlag
from maia.stores.providers.fetching import FetchLimits, Resolve, fetch
from maia.stores.providers.http import HttpFacts
from maia.stores.providers.sql import SqlFacts
from maia.stores.providers.surroundings import HomePlace, HomeSurroundings
from maia.stores.providers.tables import FileFacts, read_terminals

__all__ = [
    "PROVIDERS_FILE",
    "EmergencyChange",
    "EmergencyFlag",
    "FetchLimits",
    "FileFacts",
    "HomePlace",
    "HomeSurroundings",
    "HttpFacts",
    "ProviderConfig",
    "Resolve",
    "SqlFacts",
    "fetch",
    "read_providers",
    "read_terminals",
]
