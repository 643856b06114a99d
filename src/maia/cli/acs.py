"""What the commands of a domain share: its service in process, its policy files, and a member's proof."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from maia.cli.read.signers import open_signer
from maia.errors import NotFoundError
from maia.home import Folder

if TYPE_CHECKING:
    from maia.access_control import AccessControl, Ended, Revocation
    from maia.home import Home
    from maia.policy import PolicySource
    from maia.principals import Authenticated

POLICY = "policy"
INHERITED = "inherited"
_SUFFIX = ".rules"
_MAX_FILE = 4 << 20


def open_domain(home: Path, passphrase_file: Path | None) -> tuple[Home, AccessControl]:
    """Open a home and the service of its domain in this process.

    Raises:
        NotFoundError: There is no home, or its domain has no key here.
    """
    from maia.domain import open_access_control
    from maia.home import Home

    opened, folder = Home.open(home), Folder(home)
    try:
        signer = open_signer(folder.key(opened.config.domain), folder, passphrase_file)
    except NotFoundError as error:
        name = opened.config.domain
        raise NotFoundError(
            f"the key `{name}`, which speaks for the domain, is not in this home; `maia key new {name}` makes it",
            code="NO_DOMAIN_KEY",
        ) from error
    return opened, open_access_control(opened, signer=signer)


def prove_member(
    service: AccessControl, home: Path, name: str, passphrase_file: Path | None, *, at: datetime
) -> Authenticated:
    """Prove the key of a name in this home to the service."""
    from maia.domain import prove_key

    folder = Folder(home)
    signer = open_signer(folder.key(name), folder, passphrase_file)
    return prove_key(service, signer, nonce=secrets.token_bytes(32), at=at)


def policy_sources(home: Path) -> tuple[PolicySource, ...]:
    """Read the policy files of a home: its own, and those of parent domains in ``inherited``.

    Raises:
        NotFoundError: There is none.
    """
    from maia.policy import PolicySource

    folder = home / POLICY
    found = [(path, False) for path in sorted(folder.glob(f"*{_SUFFIX}"))]
    found += [(path, True) for path in sorted((folder / INHERITED).glob(f"*{_SUFFIX}"))]
    if not found:
        raise NotFoundError(f"there is no policy: write `{folder}/NAME{_SUFFIX}`", code="NO_POLICY")
    return tuple(PolicySource(name=path.name, text=read_rules(path), inherited=parent) for path, parent in found)


def read_rules(path: Path) -> str:
    """Read a policy file.

    Raises:
        NotFoundError: There is none.
        PolicySyntaxError: It is no text.
    """
    from maia.policy import PolicySyntaxError

    try:
        with path.open("rb") as file:
            return file.read(_MAX_FILE + 1).decode("utf-8")
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no `{path}`", code="NO_FILE") from error
    except UnicodeDecodeError as error:
        raise PolicySyntaxError(f"`{path.name}` is not UTF-8", code="POLICY_SYNTAX") from error


def keep_handed(home: Home, evidence: Iterable[bytes], statements: Iterable[bytes]) -> None:
    """Keep what was handed over in a home, after verifying every signature: certificates and statements."""
    from maia.authority import parse_statement, verify_statement
    from maia.errors import VerificationError
    from maia.principals import parse_certificate, verify_certificate

    for raw in evidence:
        home.certificates.add(verify_certificate(parse_certificate(raw)))
    book = home.statements.load()
    for raw in statements:
        try:
            book.accept(verify_statement(parse_statement(raw)))
        except VerificationError as error:
            if error.code not in ("STATEMENT_OVERLAP", "STATEMENT_ROLLBACK"):
                raise
    home.statements.save(book)


def ended_to_json(ended: Ended) -> dict[str, object]:
    """Describe a certificate that ends, for machines."""
    return {
        "certificate": ended.certificate_id.hex(), "holder": ended.holder, "privilege": ended.privilege,
        "exposure": str(ended.exposure), "reported": ended.reported,
    }  # fmt: skip


def revocation_to_json(revocation: Revocation) -> dict[str, object]:
    """Describe a withdrawal, for machines."""
    return {
        "roles": list(revocation.roles), "certificates": [ended_to_json(item) for item in revocation.certificates],
        "members": list(revocation.members), "told": revocation.told,
    }  # fmt: skip


def revocation_lines(revocation: Revocation) -> list[str]:
    """Describe a withdrawal, for people, in the order in which it happens."""
    lines = [f"role         {role}" for role in revocation.roles]
    for item in revocation.certificates:
        what = item.privilege or "granted by hand"
        who = f"{item.holder}: " if item.holder else ""
        lines.append(f"certificate  {item.certificate_id.hex()[:16]}  {who}{what}; worst case {item.exposure}")
    return lines + [f"member       {name}" for name in revocation.members]
