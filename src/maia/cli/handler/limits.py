"""Which handlers are meant, and what they may use: options that several commands take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from maia.kernel import HandlerBudget


@dataclass(frozen=True, kw_only=True)
class Within:
    """What a handler may use."""

    steps: Annotated[int, typer.Option("--steps", min=1, help="Instructions of WebAssembly a frame.")] = 1_000_000_000
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.05, max=60.0, help="A frame; for Python, a batch of 16.")
    ] = 5.0
    memory: Annotated[int, typer.Option("--memory", min=1, max=4096, help="Megabytes.")] = 256
    strikes: Annotated[int, typer.Option("--strikes", min=1, help="Faults after which one is taken off.")] = 3

    def budget(self) -> HandlerBudget:
        """Give them as a budget."""
        from maia.kernel import HandlerBudget

        return HandlerBudget(steps=self.steps, seconds=self.seconds, memory=self.memory << 20)


Handlers = Annotated[
    list[str] | None,
    typer.Option("--handler", metavar="HANDLER", help="greyscale, blur:lower-half, … or a file; repeatable, in order."),
]
