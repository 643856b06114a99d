"""The group of verbs that loads a verb only when it is asked for, and turns errors into exit codes.

Rules kept here: the list of verbs and their one-line summaries is a table, so `maia --help` imports no verb; programs
beside the product add verbs as entry points of the group ``maia.verbs``, whose names hold the summary, so that they are
not imported either; every `MaiaError` becomes ``error: [CODE] message`` with a hint on standard error and a documented
exit code; a command may return its exit code.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup

from maia.cli.read.passphrases import PASSPHRASE_VARIABLE
from maia.cli.show.exits import ExitCode, exit_code
from maia.cli.show.output import State, current_state, logging_to_stderr, note, report_error
from maia.encoding import did_you_mean
from maia.errors import MaiaError, UnavailableError, UsageError

ENTRY_POINTS = "maia.verbs"


@dataclass(frozen=True, slots=True)
class Verb:
    """Where a verb lives and what it does, in one line."""

    module: str
    summary: str


def installed_verbs() -> dict[str, Verb]:
    """Find the verbs that installed programs add, by the names of their entry points: ``NAME - SUMMARY``."""
    from importlib.metadata import entry_points

    found = {}
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        name, _, summary = point.name.partition(" - ")
        found[name] = Verb(point.value, summary)
    return found


class LazyGroup(TyperGroup):
    """A group whose commands are modules with a typer ``app``, imported on first use."""

    verbs: ClassVar[Mapping[str, Verb]] = {}
    former: ClassVar[Mapping[str, str]] = {}
    """Words that a verb was called before, which stay for a release and are shown nowhere."""

    def all_verbs(self) -> dict[str, Verb]:
        """List the product's own verbs and those of the programs beside it; nobody takes the name of an own one."""
        return dict(self.verbs) | {name: verb for name, verb in installed_verbs().items() if name not in self.verbs}

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - typer's context class is private
        """List the verbs in the order of the table."""
        return list(self.all_verbs())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - as above
        """Import a verb and build its command."""
        verb = self.verbs.get(cmd_name) or installed_verbs().get(cmd_name)
        if verb is None:
            return super().get_command(ctx, cmd_name)
        command = self.commands.get(cmd_name)
        if command is None:
            app: typer.Typer = importlib.import_module(verb.module).app
            command = typer.main.get_command(app)
            command.name = cmd_name
            # A single command is its own group; completion and --version belong to the program alone.
            command.params = [p for p in command.params if p.name not in {"install_completion", "show_completion"}]
            _take_descriptors(command)
            self.commands[cmd_name] = command
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - as above
        """Find the command of a verb, also by a word that it was called before; or say which one is near."""
        name = args[0]
        if name in self.former:
            now = self.former[name]
            note(f"`maia {name}` is `maia {now}` now; the old word goes with the next release")
            return super().resolve_command(ctx, [now, *args[1:]])
        if not name.startswith("-") and name not in self.verbs and name not in self.all_verbs():
            raise UsageError(f"no such command `{name}`{did_you_mean(name, self.all_verbs())}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as above
        """Run a verb; who interrupts it is told what stands."""
        try:
            return super().invoke(ctx)
        except (typer.Abort, KeyboardInterrupt) as error:
            raise UnavailableError(f"interrupted; {current_state().stands}", code="INTERRUPTED") from error

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 - as above
        """Write the summaries from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.summary) for name, verb in self.all_verbs().items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,  # noqa: ARG002 - typer's signature
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,  # noqa: ANN401 - typer's signature
    ) -> Any:  # noqa: ANN401 - typer's signature
        """Run a command line, and leave with its exit code when standing alone; the program is called `maia`."""
        # SECURITY: no process that this one starts, be it a Java machine or a worker, gets the passphrase.
        state = State(passphrase=os.environ.pop(PASSPHRASE_VARIABLE, None))

        def run() -> object:
            return super(LazyGroup, self).main(
                args, "maia", complete_var, standalone_mode=False,
                windows_expand_args=windows_expand_args, obj=state, **extra,
            )  # fmt: skip

        with logging_to_stderr(state), state.closing:
            code = _guarded(run, state)
        if standalone_mode:
            sys.exit(code)
        return code


def _take_descriptors(command: Any) -> None:  # noqa: ANN401 - typer's command class is private
    """Add `--passphrase-fd` to every command that takes a passphrase from a file."""
    for inner in getattr(command, "commands", {}).values():
        _take_descriptors(inner)
    places = [place for place, param in enumerate(command.params) if param.name == "passphrase_file"]
    if places:
        command.params.insert(places[0] + 1, _descriptor_option())


def _descriptor_option() -> Any:  # noqa: ANN401 - typer's option class is private
    app = typer.Typer(add_completion=False)

    @app.command()
    def _reads(
        passphrase_fd: Annotated[
            int | None,
            typer.Option(
                "--passphrase-fd",
                metavar="N",
                min=0,
                callback=_remember_descriptor,
                help="Read the passphrase from the next line of an open file descriptor.",
            ),
        ] = None,
    ) -> None:
        """Carry the option."""  # fmt: skip

    option = typer.main.get_command(app).params[0]
    option.expose_value = False
    return option


def _remember_descriptor(value: int | None) -> int | None:
    current_state().passphrase_fd = value
    return value


def _guarded(run: Callable[[], object], state: State) -> int:
    code = ExitCode.FAILED
    try:
        result = run()
        sys.stdout.flush()
    except MaiaError as error:
        code = exit_code(error)
        report_error(error, code=code, as_json=state.json)
    except typer.TyperException as error:
        code = _usage(error, state)
    except BrokenPipeError:
        sys.stdout = None  # the reader went away; there is nobody to tell
    except OSError as error:
        what = f"{error.strerror or error}: `{error.filename}`" if error.filename else str(error)
        report_error(UnavailableError(what[:1].lower() + what[1:], code="SYSTEM"), code=code, as_json=state.json)
    else:
        code = ExitCode(result) if isinstance(result, int) and not isinstance(result, bool) else ExitCode.DONE
    return int(code)


def _usage(error: typer.TyperException, state: State) -> ExitCode:
    message = error.format_message()
    if message.startswith("Usage:"):  # a group without a verb explains itself
        print(message, file=sys.stderr)
        return ExitCode.USAGE
    context = getattr(error, "ctx", None)
    hint = f"try `{context.command_path} --help`" if context is not None else "try `maia --help`"
    plain = re.sub(r"(\S+) \(Possible options: ([^)]+)\)", lambda found: _near(*found.groups()), message)
    plain = plain.replace(". Did you mean", "; did you mean").replace("'", "`").rstrip(".")
    report_error(UsageError(plain[:1].lower() + plain[1:]), code=ExitCode.USAGE, as_json=state.json, hint=hint)
    return ExitCode.USAGE


def _near(option: str, known: str) -> str:
    return f"{option}{did_you_mean(option, known.split(', '))}"
