"""Where a home keeps its agreements with other domains: files ``policy/*.agreement``. Reading one believes nothing."""

from __future__ import annotations

from pathlib import Path

from maia.errors import EncodingError, NotFoundError
from maia.home import Home, check_key_name, write_file
from maia.policy import SignedAgreement, format_agreement, parse_agreement

AGREEMENT_SUFFIX = ".agreement"
POLICY_FOLDER = "policy"
_MAX_AGREEMENT = 4 << 20
_PUBLIC_FILE = 0o644


def agreement_path(home: Home, title: str) -> Path:
    """Tell where a home keeps the agreement of a title.

    Raises:
        UsageError: The title cannot name a file: ``KEY_NAME``.
    """
    return home.path / POLICY_FOLDER / f"{check_key_name(title)}{AGREEMENT_SUFFIX}"


def write_agreement(home: Home, signed: SignedAgreement) -> Path:
    """Keep an agreement in the policy folder of a home, under its title."""
    path = agreement_path(home, signed.agreement.title)
    path.parent.mkdir(exist_ok=True)
    write_file(path, format_agreement(signed).encode(), mode=_PUBLIC_FILE)
    return path


def read_agreement(path: Path) -> SignedAgreement:
    """Read the file of an agreement.

    Raises:
        NotFoundError: There is none.
        EncodingError: It is no agreement.
    """
    try:
        with path.open("rb") as file:
            return parse_agreement(file.read(_MAX_AGREEMENT).decode("utf-8"))
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no `{path}`", code="NO_FILE") from error
    except (OSError, UnicodeDecodeError) as error:
        raise EncodingError(f"`{path}` is no agreement", code="AGREEMENT_SHAPE") from error
