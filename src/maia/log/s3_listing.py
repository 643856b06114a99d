"""Listing a folder of S3 by another client, for keys that the first one cannot name.

SECURITY: a key with an empty part, ``..`` or a control character in it stops `obstore` at the page on which it is.
Whoever may write anywhere in a bucket could hide all lanes with it. Arrow's own client gives such names as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyarrow import fs

from maia.errors import UnavailableError

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


def list_bucket(folder: str, surroundings: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """Give what lies in a folder of a bucket: the last parts of the names, and which are folders.

    Args:
        folder: The bucket, and the folder in it.
        surroundings: The environment, which tells where the store is; credentials are found as usual.

    Raises:
        UnavailableError: The store did not answer.
    """
    scheme, _, host = next((surroundings[name] for name in _ENDPOINTS if name in surroundings), "").rpartition("://")
    region = next((surroundings[name] for name in _REGIONS if name in surroundings), "us-east-1")
    try:
        client = fs.S3FileSystem(
            region=region, endpoint_override=host.rstrip("/") or None, scheme=scheme or "https",
            connect_timeout=5, request_timeout=30,
        )  # fmt: skip
        found = client.get_file_info(fs.FileSelector(folder, recursive=False, allow_not_found=True))
    except (OSError, pa.ArrowException) as error:
        raise UnavailableError(f"cannot list `{folder}`: the store did not answer", code="STORE_UNAVAILABLE") from error
    for item in found:
        if item.path.startswith(f"{folder}/"):
            yield item.path[len(folder) + 1 :], item.type == fs.FileType.Directory
