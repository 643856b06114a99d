"""How a connection with a peer stands after a step."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from maia.policy import AgreementRow
from maia.principals import PublicKey


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerState:
    """What a step towards a peer found or did.

    Attributes:
        did: ``offered`` or ``asked`` before something is signed, then ``answered`` or ``admitted``; ``ended`` after a
            connection was ended.
        peer: What the other domain calls itself, or is called by its invitation.
        known_as: The name of its key in this home.
        key: Its key.
        title: What both call the agreement.
        rows: What is given to whom.
        ends: Until when an answer counts.
        history: Since when events are opened.
        certificates: How many certificates were issued.
        groups: How many places in key groups were given.
        text: The file for the other side, when there is one.
        log: Where the shared log is.
        join_at: The key manager's address, when its service must be asked.
    """

    did: str
    peer: str
    known_as: str
    key: PublicKey
    title: str
    rows: tuple[AgreementRow, ...] = ()
    ends: datetime | None = None
    history: datetime | None = None
    certificates: int = 0
    groups: int = 0
    text: str | None = None
    log: str | None = None
    join_at: str | None = None

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.peer} ({self.key.fingerprint}): {self.did}"

    def to_json(self) -> dict[str, object]:
        """Describe it for machines."""
        return {
            "did": self.did, "peer": self.peer, "known_as": self.known_as, "key": self.key.raw.hex(),
            "fingerprint": self.key.fingerprint, "title": self.title,
            "rows": [{"role": row.role, "right": row.words} for row in self.rows],
            "ends": None if self.ends is None else self.ends.isoformat(),
            "history": None if self.history is None else self.history.isoformat(),
            "certificates": self.certificates, "groups": self.groups, "answer": self.text, "log": self.log,
            "join_at": self.join_at,
        }  # fmt: skip
