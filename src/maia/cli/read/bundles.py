"""Options that go together, taken by a command as one value.

A command says `place: CommandPlace`; `unpacked` turns that into the options of `CommandPlace` for typer, and puts the
value together again when the command is called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from maia.cli.read import options

if TYPE_CHECKING:
    from maia.authority import Root
    from maia.home import Folder, words
    from maia.principals import KeySigner, PublicKey

_T = TypeVar("_T")


def unpacked(function: Callable[..., _T]) -> Callable[..., _T]:
    """Give typer the options of a command's bundles, and the command its bundles."""
    hints = get_type_hints(function, include_extras=True)
    bundles = {name: kind for name, kind in hints.items() if inspect.isclass(kind) and is_dataclass(kind)}
    fields = {name: _options(kind) for name, kind in bundles.items()}
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        found = fields.get(parameter.name)
        parameters += [parameter.replace(annotation=hints[parameter.name])] if found is None else found

    def call(**values: Any) -> _T:  # noqa: ANN401 - whatever the options are
        for name, kind in bundles.items():
            values[name] = kind(**{option.name: values.pop(option.name) for option in fields[name]})
        return function(**values)

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # what `inspect` looks at first
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _options(kind: type) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    found = inspect.signature(kind).parameters.values()
    return [parameter.replace(annotation=hints[parameter.name]) for parameter in found]


@dataclass(frozen=True, kw_only=True)
class CommandPlace:
    """Where a command works, for which moment, and for whom it writes."""

    home: options.Home = Path()
    at: options.At = None
    json: options.Json = False

    @cached_property
    def folder(self) -> Folder:
        """The working folder."""
        from maia.home import Folder

        return Folder(self.home)

    @cached_property
    def instant(self) -> datetime:
        """The instant that counts as now."""
        from maia.cli.read.instants import decision_instant

        return decision_instant(self.at)

    def moment(self, text: str | None) -> datetime | None:
        """Read an instant that may be left out."""
        from maia.cli.read.instants import optional_instant

        return optional_instant(text, at=self.instant)


@dataclass(frozen=True, kw_only=True)
class Signing(CommandPlace):
    """As `CommandPlace`, for a command that signs something and may write it out."""

    passphrase_file: options.PassphraseFile = None
    out: options.Out = None

    def signer(self, key: PublicKey) -> KeySigner:
        """Open the private key of an issuer."""
        from maia.cli.read.signers import open_signer
        from maia.cli.show.output import stands

        stands("nothing was signed")
        return open_signer(key, self.folder, self.passphrase_file)

    def write(self, data: bytes) -> None:
        """Write what was signed, where that was asked for."""
        from maia.cli.read.files import write_target

        if self.out is not None:
            write_target(self.out, data)

    @property
    def silent(self) -> bool:
        """Whether standard output belongs to what was signed."""
        return str(self.out) == "-"


@dataclass(frozen=True, kw_only=True)
class RightOptions:
    """Which right is meant, and who is trusted with it."""

    type_: options.Type = None
    network: options.Network = None
    tag: options.RawTag = None
    action: options.Actions = None
    attribute: options.Attributes = None
    root: options.Roots = None

    @property
    def given(self) -> bool:
        """Whether any right was named."""
        return any((self.type_, self.network, self.tag, self.action, self.attribute))

    def right(
        self,
        folder: Folder,
        *,
        on_violation: str | None = None,
        enforced: bool = False,
        bounds: list[str] | None = None,
    ) -> words.Right:
        """Read the right.

        Raises:
            MaiaError: It is none, or useless; the message says why.
        """
        from maia.home import words

        return words.parse_right(
            folder, type_=self.type_, network=self.network, tag=self.tag, actions=self.action,
            attributes=self.attribute, on_violation=on_violation, enforced=enforced, bounds=bounds,
        )  # fmt: skip

    def super_topics(self, folder: Folder) -> Iterator[RightOptions]:
        """Give the rights on super-topics that publishing under a topic needs besides; none for anything else."""
        from maia.events import lineage
        from maia.home import words
        from maia.principals import principal_id

        if self.type_ is None or "publish" not in (self.action or ()) or self.type_.strip() == "*":
            return
        owner, name, _ = words.split_type(self.type_, folder)
        if any(item.options.topic for item in folder.versions(principal_id(owner), name)):
            shown = words.show_subject(owner, folder).partition(" ")[0]
            yield from (replace(self, type_=f"{shown}/{above}") for above in lineage(name)[:-1])

    def roots(self, folder: Folder) -> tuple[Root, ...]:
        """Read the trusted principals."""
        from maia.authority import Root
        from maia.home import words

        return tuple(Root(subject=words.parse_principal_text(text, folder)) for text in self.root or ())
