"""The agreements of a home with other domains: files ``policy/*.agreement``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from maia.domain.snapshot import FileState, file_state
from maia.errors import EncodingError, MaiaError, NotFoundError
from maia.home import Home, check_key_name, write_file
from maia.policy import SignedAgreement, format_agreement, parse_agreement, verify_agreement
from maia.principals import KeyId

AGREEMENT_SUFFIX = ".agreement"
POLICY_FOLDER = "policy"
_MAX_AGREEMENT = 4 << 20
_MAX_AGREEMENTS = 1_000
_PUBLIC_FILE = 0o644


class HomeAgreements:
    """The agreements of a home, read again when its policy folder has changed; only what verifies counts."""

    def __init__(self, home: Home, domain: KeyId) -> None:
        """Serve a home whose domain has this key."""
        self._home = home
        self._domain = domain
        self._known: tuple[FileState, tuple[SignedAgreement, ...]] | None = None

    def all(self) -> tuple[SignedAgreement, ...]:
        """List the agreements that can be read, signed or not."""
        folder = self._home.path / POLICY_FOLDER
        state = file_state(folder)
        if self._known is None or self._known[0] != state:
            found: list[SignedAgreement] = []
            for path in sorted(folder.glob(f"*{AGREEMENT_SUFFIX}"))[:_MAX_AGREEMENTS]:
                try:
                    found.append(read_agreement(path))
                except MaiaError:
                    continue  # a file that is no agreement gives nothing
            self._known = (state, tuple(found))
        return self._known[1]

    def named_roles(self, *, at: datetime) -> frozenset[str]:
        """Give the roles of this domain that agreements in force speak of."""
        roles: set[str] = set()
        for signed in self.all():
            if signed.agreement.receiver.key_id == self._domain:
                try:
                    verify_agreement(signed, at=at, statements=self._home.statements.load())
                except MaiaError:
                    continue
                roles |= signed.agreement.roles
        return frozenset(roles)


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
