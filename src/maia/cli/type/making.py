"""What `define`, `evolve` and `from-schema` share: how events travel, who signs, and the definition kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read.bundles import Signing
from maia.cli.read.options import principal_option

if TYPE_CHECKING:
    from maia.events import EventType, Options, UnverifiedEventType

OnNetwork = Annotated[
    str | None,
    typer.Option("--network", metavar="OWNER/NAME", help="Also show the right to install types on this network."),
]


@dataclass(frozen=True, kw_only=True)
class Travel:
    """How events of a type travel."""

    encryption: Annotated[
        str | None, typer.Option(metavar="MODE", help="plain, event or attribute, which it is unless named.")
    ] = None
    closed: Annotated[
        str | None, typer.Option(metavar="FORM", help="What a closed attribute becomes: null, unless named, or omit.")
    ] = None
    release: Annotated[
        str | None, typer.Option(metavar="LINKS", help="Which links events take: overlay, unless named, or direct.")
    ] = None
    padding: Annotated[
        int | None, typer.Option(metavar="OCTETS", help="Round sealed lengths up to a multiple; 0 unless named.")
    ] = None

    compression: Annotated[
        bool | None,
        typer.Option("--compression/--no-compression", help="Pack values before sealing, unless named otherwise."),
    ] = None

    def options(self, like: Options | None = None) -> Options:
        """Read the options of a definition; what is not named is as elsewhere, or as usual."""
        from maia.events import Options

        named = {
            "encryption": self.encryption, "closed": self.closed, "release": self.release, "padding": self.padding,
            "compression": self.compression,
        }  # fmt: skip
        said = {name: value for name, value in named.items() if value is not None}
        # What extends a topic has no place in the tree.
        return replace(Options() if like is None else replace(like, topic=False), **said)  # type: ignore[arg-type] # read from words


@dataclass(frozen=True, kw_only=True)
class Making(Signing):
    """As `Signing`, for a definition: who signs it, and on which network it is to be installed."""

    signer_text: Annotated[
        str | None,
        principal_option("--as", help="Who signs; the owner unless named. Others need `manage` certificates."),
    ] = None
    network: OnNetwork = None

    def keep(self, definition: EventType, *, old: UnverifiedEventType | None = None) -> None:
        """Sign and keep a definition, and say what it is and what it changes."""
        from maia.cli.show.output import note, write_json, write_line
        from maia.cli.type.view import change_to_json, show_name, type_to_json
        from maia.events import diff, misleading_names
        from maia.home import sign_definition, words

        folder = self.folder
        key, on = (
            words.signer_key(self.signer_text, definition.name.owner, folder),
            words.split_network(self.network, folder),
        )
        signed = sign_definition(folder, definition, self.signer(key), at=self.instant, network=on)
        self.write(signed.raw)
        changes = () if old is None else diff(old.definition, definition).changes
        if self.json:
            more = {} if old is None else {"changes": [change_to_json(change) for change in changes]}
            write_json({**type_to_json(signed), **more})
        elif not self.silent:
            write_line(show_name(definition.name, folder))
            for change in changes:
                write_line(f"  {change}")
        for text in misleading_names(definition, folder.types.names()):
            note(f"warning: {text}")
