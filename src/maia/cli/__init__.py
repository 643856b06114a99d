"""The command `maia`: one package per verb, imported when it is asked for."""

from __future__ import annotations

import resource as _resource
import typing as _typing
from types import MappingProxyType as _MappingProxy
from typing import Annotated as _Annotated

import typer as _typer

from maia.cli.group import LazyGroup as _LazyGroup
from maia.cli.group import Verb as _Verb
from maia.cli.read import options
from maia.cli.show.output import State as _State
from maia.cli.show.output import set_level as _set_level
from maia.lazy import on_first_use as _on_first_use
from maia.version import __version__ as _version

if _typing.TYPE_CHECKING:
    from maia.cli.read.instants import now
    from maia.cli.read.options import examples, new_app
    from maia.cli.show.output import note, screen, write_json, write_line
    from maia.cli.show.progress import watching

__all__ = [
    "app",
    "examples",
    "main",
    "new_app",
    "note",
    "now",
    "options",
    "screen",
    "watching",
    "write_json",
    "write_line",
]

# What the programs beside the command line (demo, bench, conformance) write and read with.
__getattr__ = _on_first_use(
    __name__,
    {
        "examples": "read.options",
        "new_app": "read.options",
        "note": "show.output",
        "now": "read.instants",
        "screen": "show.output",
        "watching": "show.progress",
        "write_json": "show.output",
        "write_line": "show.output",
    },
)

_VERBS = _MappingProxy(
    {
        "key": _Verb("maia.cli.key.command", "Make, show and import keys."),
        "cert": _Verb("maia.cli.cert.command", "Show certificates."),
        "name": _Verb("maia.cli.name.command", "Give principals local names."),
        "grant": _Verb("maia.cli.grant.command", "Issue a capability."),
        "prove": _Verb("maia.cli.prove.command", "Find a proof of a right in a folder of certificates."),
        "verify": _Verb("maia.cli.verify.command", "Check a proof, a certificate or a folder."),
        "explain": _Verb("maia.cli.explain.command", "Show why a right is held, or what is missing."),
        "who-can": _Verb("maia.cli.who_can.command", "List who reads or writes an attribute, and by which chain."),
        "what-if": _Verb("maia.cli.what_if.command", "Tell what changes with certificates more or less, or later."),
        "compare": _Verb("maia.cli.compare.command", "Compare what principals are shown of a type."),
        "revoke": _Verb("maia.cli.revoke.command", "Revoke a certificate, a role or a membership."),
        "statement": _Verb("maia.cli.statement.command", "Make and keep validity statements."),
        "type": _Verb("maia.cli.type.command", "Define, evolve and check event types."),
        "topic": _Verb("maia.cli.topic.command", "Define and show topics, and give rights on them."),
        "filter": _Verb("maia.cli.filter.command", "Check, format and compare filters."),
        "domain": _Verb("maia.cli.domain.command", "Make the home of a domain; its members, and other domains."),
        "policy": _Verb("maia.cli.policy.command", "Check, format, preview and apply a domain's policy."),
        "release": _Verb(
            "maia.cli.release.command", "Check, preview and apply the rules by which events leave the domain."
        ),
        "handler": _Verb("maia.cli.handler.command", "Run code on image streams, in sandboxes."),
        "credential": _Verb("maia.cli.credential.command", "Issue, check and hand over the overlay's credentials."),
        "directory": _Verb("maia.cli.directory.command", "Name objects and principals, each name once."),
        "code": _Verb("maia.cli.code.command", "Keep code by its digest, and hand it out for credentials."),
        "role": _Verb("maia.cli.role.command", "Activate and list roles; record what they stand on."),
        "advertise": _Verb("maia.cli.advertise.command", "Say what a client will publish; take it back."),
        "publish": _Verb("maia.cli.publish.command", "Publish the rows of a file as events."),
        "subscribe": _Verb("maia.cli.subscribe.command", "See events as a client may see them."),
        "client": _Verb("maia.cli.client.command", "Publish and subscribe over a domain's gateway."),
        "translate": _Verb("maia.cli.translate.command", "Move events from one type to another, as a client."),
        "deliver": _Verb("maia.cli.deliver.command", "Run the delivery job of a domain; read a subscription's outbox."),
        "status": _Verb("maia.cli.status.command", "Tell what a domain has and lacks, and what to do next."),
        "keys": _Verb("maia.cli.keys.command", "Show and refresh the key groups that a home manages."),
        "log": _Verb("maia.cli.log.command", "Show, compact and expire the log."),
        "link": _Verb("maia.cli.link.command", "Copy logs that other domains serve into the own one."),
        "worker": _Verb("maia.cli.worker.command", "Name the machines that run the tasks of a domain."),
        "audit": _Verb("maia.cli.audit.command", "Show who published, saw or was refused what."),
        "trace": _Verb("maia.cli.trace.command", "Show the steps that events went through, without values."),
        "serve": _Verb("maia.cli.serve.command", "Run a service of a home."),
        "console": _Verb("maia.cli.console.command", "Open the console of a home in a browser."),
        "login": _Verb("maia.cli.login.command", "Log in to a console with a key that stays here."),
        "network": _Verb("maia.cli.network.command", "Run several domains on this machine as processes."),
        "simulate": _Verb("maia.cli.simulate.command", "Play the overlay network with thousands of brokers."),
        "doctor": _Verb("maia.cli.doctor.command", "Look at the installation and at a home."),
    }
)


class _Maia(_LazyGroup):
    verbs = _VERBS
    former = _MappingProxy({"withdraw": "revoke", "retract": "revoke", "end": "revoke"})


app = _typer.Typer(
    cls=_Maia,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(value: bool) -> None:
    if value:
        print(f"maia {_version}")
        raise _typer.Exit


@app.callback(
    invoke_without_command=True,
    epilog="\b\nExample:\n  maia demo\n  maia key new smith\n\n"
    "Exit codes: 0 done, 1 failed, 2 usage, 3 access denied, 4 verification failed, 5 not found, 6 differs, "
    "130 interrupted.",
)
def _maia(
    context: _typer.Context,
    verbose: _Annotated[
        int, _typer.Option("--verbose", "-v", count=True, show_default=False, help="Say more on standard error.")
    ] = 0,
    quiet: _Annotated[bool, _typer.Option("--quiet", "-q", help="Say nothing but errors on standard error.")] = False,
    _version: _Annotated[
        bool, _typer.Option("--version", help="Show the version and leave.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Share one stream of events between organisations that do not fully trust one another.

    Principals are keys, rights are certificates that their holders carry, and any verifier can trace a right back to
    the owner of what it is about.
    """
    state = context.obj
    if isinstance(state, _State):
        state.verbosity = -1 if quiet else verbose
        _set_level(state)
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run the command line of this process and leave with its exit code."""
    # SECURITY: passphrases, keys and events pass through here, and through the JVM that some verbs start.
    _resource.setrlimit(_resource.RLIMIT_CORE, (0, 0))
    app()
