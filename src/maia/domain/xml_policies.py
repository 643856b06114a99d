"""XML policies from where they are kept: files, and web servers that the home's settings name.

Rules kept here:

- a policy is fetched over https only, from a host that ``fetch`` in ``maia.toml`` names, within the limits of
  `maia.home.providers.fetch`; no redirect is followed, and nothing that a policy names is fetched at all;
- a policy that cannot be had, or is not valid, says nothing: whatever was asked is refused;
- the home's own policies, ``policy/*.xml``, count whatever somebody names beside them; their hours are those of UTC.
"""

from __future__ import annotations

from datetime import datetime, time
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from maia.domain.agreement_files import POLICY_FOLDER
from maia.domain.fetched import is_loopback
from maia.encoding import printable
from maia.errors import DeniedError, NotFoundError, UsageError
from maia.home import Folder, providers
from maia.policy import PolicySyntaxError, xml

OWN_ZONE = "UTC"
"""Whose clock the hours of a home's own policies mean."""
_SECONDS = 5.0
_OWN = "*.xml"


class OwnPolicies:
    """The XML policies of a home; what is replaced counts from the next look on."""

    def __init__(self, folder: Folder) -> None:
        """Look at a home; nothing is read yet."""
        self._folder = folder
        self._read: dict[Path, tuple[bytes, xml.XmlPolicy]] = {}

    def now(self) -> tuple[xml.XmlPolicy, ...]:
        """Read them as they are; one that is as it was is not parsed again.

        Raises:
            PolicySyntaxError: One of them is not valid; the message names the file and the line.
        """
        found: dict[Path, tuple[bytes, xml.XmlPolicy]] = {}
        for path in sorted((self._folder.path / POLICY_FOLDER).glob(_OWN)):
            data, before = _read(path), self._read.get(path)
            found[path] = before if before is not None and before[0] == data else (data, _parsed(data, path.name))
        self._read = found
        return tuple(policy for _, policy in found.values())


def read_xml_policy(folder: Folder, source: str) -> xml.XmlPolicy:
    """Read a policy from a file or an ``https://`` address.

    Args:
        folder: Whose settings say which hosts may be asked.
        source: A path or an address.

    Raises:
        PolicySyntaxError: It is no valid policy; the message names the source and the line.
        NotFoundError: There is no such file: ``NO_FILE``.
        DeniedError: The address is not https, or not one of an allowed host: ``FETCH_REFUSED``.
        UnavailableError: The host did not answer within the limits.
    """
    return _parsed(_fetched(folder, source) if "://" in source else _read(Path(source)), source)


def _parsed(data: bytes, source: str) -> xml.XmlPolicy:
    try:
        return xml.parse_xml(data)
    except PolicySyntaxError as error:
        message = f"`{printable(source)}`: {error.message}"
        raise PolicySyntaxError(message, code=error.code, line=error.line, column=error.column) from error


def policy_clock(at: datetime, zone: str) -> time:
    """Give the time of the day that the hours of policies mean, by the clock of a zone.

    Raises:
        UsageError: There is no such zone: ``PROVIDER_ZONE``.
    """
    try:
        return at.astimezone(ZoneInfo(zone)).time()
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(f"there is no time zone `{printable(zone)}`", code="PROVIDER_ZONE") from error


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(xml.DEFAULT_XML_LIMITS.octets + 1)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFoundError(f"there is no `{path}`", code="NO_FILE") from error


def _fetched(folder: Folder, url: str) -> bytes:
    host = urlsplit(url).hostname or "" if url.startswith("https://") else ""
    if not host:
        raise DeniedError("a policy is a file, or fetched over https", code="FETCH_REFUSED")
    settings = folder.config
    hosts = frozenset(((settings and settings.fetch) or "").split())
    limits = providers.FetchLimits(
        hosts=hosts, loopback=is_loopback(host), octets=xml.DEFAULT_XML_LIMITS.octets, seconds=_SECONDS
    )
    return providers.fetch(url, limits, accept="application/xml")
