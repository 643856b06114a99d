"""Providers of environment facts that look outside: databases, files, services, flags; and the home's surroundings."""

from maia.home.providers.configuration import PROVIDERS_FILE, ProviderConfig, read_providers
from maia.home.providers.emergency import EmergencyChange, EmergencyFlag
from maia.home.providers.fetching import FetchLimits, Resolve, fetch
from maia.home.providers.http import HttpFacts
from maia.home.providers.sql import SqlFacts
from maia.home.providers.surroundings import HomePlace, HomeSurroundings
from maia.home.providers.tables import FileFacts, read_terminals

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
