"""Whose labelled frame it is, and whom an exit or an exception of it is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from maia.domain import Client, Domain, note_session
from maia.errors import FlowError
from maia.events import TypeName
from maia.labels import LabelPolicy

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose frame it is, and by which policy.

    Attributes:
        domain: The domain.
        client: The client.
        policy: The domain's label policy when the frame was read.
        source: The type that was read.
    """

    domain: Domain
    client: Client
    policy: LabelPolicy
    source: TypeName

    def note(self, kind: str, code: str, source: str) -> None:
        """Tell the audit."""
        note_session(
            self.domain.home, kind, self.client.proven, self.source.type_id, source=source, at=self.domain.clock(),
            code=code,
        )  # fmt: skip

    def leave(self, exit_: str, judged: Callable[[], T]) -> T:
        """Ask whether something may leave; tell the audit when it may not."""
        try:
            return judged()
        except FlowError as error:
            self.note("refuse", error.code, exit_)
            raise
