"""Connecting with another organisation: one file each way.

Each function is a method of `Domain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from maia.domain.given import AskPassphrase, asks, several
from maia.home import passphrase_asker
from maia.principals import KeySigner

if TYPE_CHECKING:
    from maia.domain.domain import Domain
    from maia.domain.peers import InvitedPeer, PeerState


def invite_peer(
    domain: Domain,
    peer: str,
    *,
    give: str | Sequence[str],
    until: datetime | None = None,
    key: str | None = None,
    history: datetime | None = None,
    log: str | None = None,
    passphrase: AskPassphrase | None = None,
) -> InvitedPeer:
    """Invite another organisation: one signed file that works once. ``save(path)`` writes it.

    Args:
        domain: This side.
        peer: What people call the other organisation.
        give: What its roles may do: ``researcher |- subscribe Result(ward, test)``.
        until: Until when it may answer; a week by default.
        key: The other's key, when only that may answer.
        history: Since when events are opened to it; from its admission on by default.
        log: Where the other finds the log, when not where this home does.
        passphrase: Asks for the passphrase of the domain's key, when that is sealed.

    Raises:
        DeniedError: This domain cannot give it: ``ISSUER_LACKS_RIGHT``.
        MaiaError: A row is none, or nobody manages the keys of a type; the message says what.
    """
    from maia.domain.peers import invite_peer as invite  # noqa: PLC0415 - needs a database

    return invite(
        domain.home, _speaker(domain, passphrase), domain.own_key_manager, peer, give=several(give) or (),
        at=domain.clock(), until=until, peer_key=None if key is None else domain.home.folder.key(key), history=history,
        log=log,
    )  # fmt: skip


def connect(
    domain: Domain,
    file: Path | str,
    *,
    readers: str | Sequence[str] = (),
    log: Path | str | None = None,
    passphrase: AskPassphrase | None = None,
) -> PeerState:
    """Connect with another organisation: answer its invitation, or admit whoever answered this domain's.

    Args:
        domain: This side.
        file: The invitation, or the answer. Calling this agrees to what it offers or asks for.
        readers: With an invitation: keys of this home that are given the agreed roles at once.
        log: With an invitation: where the shared log is for this home.
        passphrase: Asks for the passphrase of the domain's key, when that is sealed.

    Returns:
        What was done; its ``text`` is the answer to be sent back, after an invitation.

    Raises:
        MaiaError: The file is altered, over, used, or for somebody else; the code says which.
    """
    from maia.domain.peers import connect_peer  # noqa: PLC0415 - needs a database

    done = connect_peer(
        domain.home, _speaker(domain, passphrase), domain.own_key_manager, Path(file), at=domain.clock(),
        readers=several(readers) or (), log=log,
    )  # fmt: skip
    domain.reopen()
    return done


def _speaker(domain: Domain, passphrase: AskPassphrase | None) -> KeySigner:
    """Open the key that speaks for the domain."""
    folder = domain.home.folder
    return folder.signer(folder.key(domain.config.domain), lambda name: asks(passphrase) or passphrase_asker(name))
