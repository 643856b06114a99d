"""Image streams, handed to clients through the handlers that they are due. The function is a method of `Domain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maia.kernel import DEFAULT_HANDLER_BUDGET, HandlerBudget

if TYPE_CHECKING:
    from maia.domain.domain import Domain
    from maia.domain.handlers import ImageChannel


def channel(
    domain: Domain,
    type: str,  # noqa: A002 - as everywhere
    *,
    operator: str,
    budget: HandlerBudget = DEFAULT_HANDLER_BUDGET,
    strikes: int = 3,
    batch: int = 16,
) -> ImageChannel:
    """Open the stream of a type whose events are frames, to bind clients to it.

    Args:
        domain: Whose log, policies and clients.
        type: The type, with the attributes ``number``, ``height``, ``width``, ``channels`` and ``pixels``.
        operator: Who opens the stream: a client of the home, by name, which proves its key and may subscribe.
        budget: What a handler may use.
        strikes: After how many faults one is taken off.
        batch: How many frames go through the handlers together; 1 is packet by packet. What comes out is the same.

    Raises:
        MaiaError: There is no such type or operator, or the type's events are no frames.
    """
    from maia.domain.handlers import ImageChannel  # noqa: PLC0415 - brings the sandboxes, which few need

    return ImageChannel(domain, type, operator=operator, budget=budget, strikes=strikes, batch=batch)
