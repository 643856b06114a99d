"""One door for both files between peers: an invitation is answered, an answer is admitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from maia.domain.access_control import open_register
from maia.domain.own_key_manager import OwnKeyManager
from maia.domain.peers.admission import admit_peer
from maia.domain.peers.answering import answer_peer
from maia.domain.peers.states import PeerState
from maia.errors import NotFoundError
from maia.home import Home
from maia.policy import peers
from maia.principals import Signer


def _agree(_: PeerState) -> None:
    """Ask nobody: whoever calls has agreed."""


def connect_peer(
    home: Home,
    signer: Signer,
    own: OwnKeyManager,
    file: Path,
    *,
    at: datetime,
    readers: Sequence[str] = (),
    log: Path | str | None = None,
    confirm: Callable[[PeerState], None] = _agree,
) -> PeerState:
    """Answer an invitation (`answer_peer`), or admit the domain that answered one of this home (`admit_peer`).

    Raises:
        NotFoundError: There is no such file: ``NO_SUCH_FILE``.
        MaiaError: As these two do.
    """
    data = _read(file)
    if peers.kind_of_peer_file(data) is peers.PeerFileKind.INVITATION:
        return answer_peer(home, signer, data, at=at, readers=readers, log=log, confirm=confirm)
    with open_register(home, signer) as service:
        return admit_peer(home, service, signer, own, data, at=at, confirm=confirm)


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            # One octet more than a file may have, so that a longer one is refused as such.
            return stream.read(peers.MAX_PEER_FILE + 1)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFoundError(f"no file `{file}`", code="NO_SUCH_FILE") from error
