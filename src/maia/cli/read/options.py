"""The options that several verbs share, written once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from maia.cli.show.output import State


def examples(*lines: str) -> str:
    """Write the examples below a command's help, kept as they are."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


def new_app(summary: str | None = None, *example: str) -> typer.Typer:
    """Make the typer application of one verb; with a summary it is a noun whose verbs follow."""
    app = typer.Typer(
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        no_args_is_help=summary is not None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    if summary is not None:
        app.callback(help=summary, epilog=examples(*example) if example else None)(lambda: None)
    return app


def _remember_json(context: typer.Context, value: bool) -> bool:
    state = context.find_root().obj
    if isinstance(state, State):
        state.json = value
    return value


def _names_in(folder: str, ending: str) -> Callable[[typer.Context, list[str], str], list[str]]:
    def complete(context: typer.Context, args: list[str], incomplete: str) -> list[str]:  # noqa: ARG001 - typer's
        home = Path(str(context.params.get("home") or "."))
        return sorted(path.stem for path in (home / folder).glob(f"*{ending}"))

    return complete


_complete_keys, _complete_certificates = _names_in("keys", ".pub"), _names_in("certificates", ".cert")


def principal_option(*names: str, help: str) -> Any:  # noqa: A002, ANN401 - as typer calls it
    """Make an option that takes a principal and completes key names."""
    return typer.Option(*names, help=help, metavar="PRINCIPAL", autocompletion=_complete_keys)


def certificate_argument(help: str) -> Any:  # noqa: A002, ANN401 - as typer calls it
    """Make an argument that takes a certificate and completes ids."""
    return typer.Argument(help=help, metavar="CERTIFICATE", autocompletion=_complete_certificates)


Home: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--home", envvar="MAIA_HOME", metavar="DIR", help="Working folder with keys, certificates and statements."
    ),
]
Json: TypeAlias = Annotated[
    bool,
    typer.Option("--json", help="Write one JSON object to standard output.", callback=_remember_json, is_eager=True),
]
At: TypeAlias = Annotated[
    str | None, typer.Option("--at", metavar="INSTANT", help="The instant of the decision, in place of now.")
]
PassphraseFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--passphrase-file", metavar="FILE", help="Read the passphrase from the first line of a file."),
]
Type: TypeAlias = Annotated[
    str | None,
    typer.Option("--type", metavar="OWNER/NAME[@VERSION]", help="An event type; NAME may be a glob, `*` is any."),
]
EventTypeName: TypeAlias = Annotated[
    str | None, typer.Option("--type", metavar="NAME", help="The event type: NAME or OWNER/NAME@VERSION.")
]
Network: TypeAlias = Annotated[
    str | None, typer.Option("--network", metavar="OWNER/NAME", help="A network; NAME may be a glob, `*` is any.")
]
RawTag: TypeAlias = Annotated[
    str | None, typer.Option("--tag", metavar="SEXP", help="Any other right, as a tag in the advanced form.")
]
Actions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--action",
        metavar="ACTION",
        help="connect, install; publish, subscribe, manage, extend, addAttribute, … Repeatable; none means all.",
    ),
]
Attributes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--attribute",
        metavar="NAME[OP VALUE]",
        help="An attribute, perhaps with a demand on its value: speed, speed>=500, plate='AE05 XYZ'; or `uid:3`. "
        "None means all.",
    ),
]
Roots: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--root", metavar="PRINCIPAL", help="Who is trusted with what has no owner in its name.",
        autocompletion=_complete_keys,
    ),
]  # fmt: skip
Statements: TypeAlias = Annotated[
    list[Path] | None, typer.Option("--statement", metavar="FILE", help="A further statement, for this once.")
]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and sign nothing.")]
Evidence: TypeAlias = Annotated[
    Path | None,
    typer.Option("--certificates", metavar="DIR", help="Folder of certificates, in place of the home's own."),
]
NotBefore: TypeAlias = Annotated[
    str | None, typer.Option("--not-before", metavar="INSTANT", help="First instant of validity; open when left out.")
]
Until: TypeAlias = Annotated[
    str | None,
    typer.Option("--until", metavar="INSTANT", help="Last instant of validity, or `+90d`; open when left out."),
]
Tests: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--test",
        metavar="KIND:SIGNER[@URI]",
        help="Demand a statement: crl:met, revalidation:met, one-time:met; perhaps with the address to fetch it.",
    ),
]
Out: TypeAlias = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the signed object to a file; `-` is stdout.")
]
