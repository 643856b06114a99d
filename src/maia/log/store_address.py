"""Addresses of stores, as ``maia.toml`` and invitations give them.

    log                      a directory, relative to the home
    file:///srv/log          a directory
    s3://bucket/prefix       Amazon S3, or what speaks like it
    gs://bucket/prefix       Google Cloud Storage
    az://container/prefix    Azure Blob Storage
    kafka://host:port/prefix Kafka: the topics ``prefix.names`` and ``prefix.data``
    memory://name            the memory of this process, for tests; no home's log, which must outlive a process

Rules kept here:

- an address names a place and nothing else. Who we are there is said by the environment (``AWS_ACCESS_KEY_ID`` …),
  never by a file of the home: an address with a user, a password or options is refused (``STORE_ADDRESS``);
- who keeps what it opened has one client for each process, address and environment; nobody else keeps any. A log in
  Kafka is heard by whoever opens it, and nobody else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping, MutableMapping
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from maia.encoding import did_you_mean
from maia.errors import UnavailableError, UsageError
from maia.log.directory_store import DirectoryStore
from maia.log.store import Store, split_name

if TYPE_CHECKING:
    from maia.log.object_store import ObjectStore

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SCHEMES = ("az", "file", "gs", "kafka", "memory", "s3")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_NODE = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\]):([1-9][0-9]{0,4})")
_TOPIC = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_FORMS = {"kafka": "host:port/prefix"}
_OURS = ("AWS_", "AZURE_", "GOOGLE_")
_RETRIES = {"max_retries": 5, "retry_timeout": timedelta(seconds=30)}
_PATIENCE = {"connect_timeout": "5s", "read_timeout": "30s", "timeout": "15m"}


def is_address(place: str) -> bool:
    """Tell an address from a directory."""
    return _ADDRESS.match(place) is not None


def check_address(address: str) -> str:
    """Give the place that an address names, a directory by its path; no store is asked.

    Raises:
        UsageError: It is none, says more than a place, or names what no home's log may lie in: ``STORE_ADDRESS``.

    Examples:
        >>> check_address("s3://logs/met/"), check_address("file:///srv/log")
        ('s3://logs/met', '/srv/log')
        >>> check_address("s3://key:secret@logs/met")
        Traceback (most recent call last):
        maia.errors.UsageError: [STORE_ADDRESS] ...
    """
    scheme, bucket, prefix = _split(address)
    if scheme == "memory":
        raise UsageError("what is published to a memory ends with its process; name a store", code="STORE_ADDRESS")
    return f"/{prefix}" if scheme == "file" else f"{scheme}://{bucket}/{prefix}".rstrip("/")


def open_store(place: Path | str, opened: MutableMapping[Hashable, Store] | None = None) -> Store:
    """Open the store at a place: a directory, or an address. Nothing is asked of it yet.

    Args:
        place: The directory, or the address.
        opened: The stores that the caller has open: one is opened once while the environment, from which its client
            takes credentials, and the process stay the same.

    Raises:
        UsageError: It is no address of a store: ``STORE_ADDRESS``.
    """
    if isinstance(place, Path) or not is_address(place):
        return DirectoryStore(place)
    scheme, bucket, prefix = _split(place)
    if scheme == "file":
        return DirectoryStore(f"/{prefix}")
    if scheme == "kafka":
        # Whoever has another store need not have Kafka's client.
        if find_spec("confluent_kafka") is None:
            raise UnavailableError(
                "a log in Kafka needs a client: install `maia[kafka]`, which brings `confluent-kafka`",
                code="STORE_UNAVAILABLE",
            )
        from maia.log.kafka_store import KafkaStore  # noqa: PLC0415

        return KafkaStore(bucket, prefix, os.environ)
    told = {key: value for key, value in os.environ.items() if key.startswith(_OURS)}
    if opened is None:
        return _open(scheme, bucket, prefix, told)
    key = (place, tuple(sorted(told.items())), os.getpid())  # connections do not survive a fork
    if key not in opened:
        opened[key] = _open(scheme, bucket, prefix, told)
    return opened[key]


def _open(scheme: str, bucket: str, prefix: str, told: Mapping[str, str]) -> ObjectStore:
    """Make a client, which reads the environment by itself."""
    # Whoever has a directory need not load the clients of object stores.
    from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store  # noqa: PLC0415

    from maia.log.object_store import ObjectStore  # noqa: PLC0415
    from maia.log.s3_listing import list_bucket  # noqa: PLC0415

    place = f"{scheme}://{bucket}/{prefix}".rstrip("/")
    if scheme == "memory":
        return ObjectStore(place, MemoryStore())
    options = {**_PATIENCE, "allow_http": _allows_http(told)}
    below = prefix or None
    if scheme == "gs":
        return ObjectStore(place, GCSStore(bucket, prefix=below, client_options=options, retry_config=_RETRIES))  # type: ignore[arg-type]
    if scheme == "az":
        return ObjectStore(place, AzureStore(bucket, prefix=below, client_options=options, retry_config=_RETRIES))  # type: ignore[arg-type]
    backend = S3Store(bucket, prefix=below, client_options=options, retry_config=_RETRIES)  # type: ignore[arg-type]
    root = f"{bucket}/{prefix}".rstrip("/")
    return ObjectStore(place, backend, otherwise=lambda folder: list_bucket(f"{root}/{folder}".rstrip("/"), told))


def _allows_http(told: Mapping[str, str]) -> bool:
    """Tell whether the environment lets us speak without TLS, as it does for emulators."""
    return any(told.get(name, "").lower() in ("1", "true", "yes") for name in ("AWS_ALLOW_HTTP", "AZURE_ALLOW_HTTP"))


def _split(address: str) -> tuple[str, str, str]:
    """Split an address into its scheme, its bucket and what keys begin with."""
    try:
        parts = urlsplit(address)
        port = ":" in parts.netloc and parts.scheme != "kafka"
        said = parts.query or parts.fragment or "@" in parts.netloc or port or "?" in address
    except ValueError:
        raise _wrong(address, "it is no address") from None
    if parts.scheme not in _SCHEMES:
        near = did_you_mean(parts.scheme, _SCHEMES)
        raise _wrong(address, f"there is no store of the kind `{parts.scheme}`{near}")
    if said:
        # SECURITY: what is secret in an address would be in files, messages and plans; so it is not repeated either.
        raise UsageError(
            f"an address of a store is `{parts.scheme}://{_FORMS.get(parts.scheme, 'bucket/prefix')}`; "
            "credentials come from the environment",
            code="STORE_ADDRESS",
        )
    prefix = parts.path.strip("/") if parts.scheme != "file" else unquote(parts.path).strip("/")
    if prefix:
        try:
            split_name(prefix)
        except UsageError:
            raise _wrong(address, "its path leads nowhere") from None
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise _wrong(address, "a directory is `file:///` and its path")
    elif parts.scheme == "kafka":
        if not _NODE.fullmatch(parts.netloc) or not _TOPIC.fullmatch(prefix):
            raise _wrong(
                address,
                "a log in Kafka is `kafka://host:port/prefix`; topics have names of letters, digits, `.`, `_` and `-`",
            )
    elif not _BUCKET.fullmatch(parts.netloc):
        raise _wrong(address, "a bucket has a name of letters, digits, `.`, `_` and `-`")
    return parts.scheme, parts.netloc, prefix


def _wrong(address: str, why: str) -> UsageError:
    return UsageError(f"`{address}` is no address of a store: {why}", code="STORE_ADDRESS")
