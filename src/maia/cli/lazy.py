"""The group of verbs that loads a verb only when it is asked for, and turns errors into exit codes.

Rules kept here: the list of verbs and their one-line summaries is a table, so `maia --help` imports no verb; every
`MaiaError` becomes ``error: [CODE] message`` with a hint on standard error and a documented exit code; a command may
return its exit code.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup

from maia.cli.show.exits import ExitCode, exit_code
from maia.cli.show.output import State, logging_to_stderr, report_error
from maia.errors import MaiaError, UnavailableError, UsageError


@dataclass(frozen=True, slots=True)
class Verb:
    """Where a verb lives and what it does, in one line."""

    module: str
    summary: str


class LazyGroup(TyperGroup):
    """A group whose commands are modules with a typer ``app``, imported on first use."""

    verbs: ClassVar[Mapping[str, Verb]] = {}

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - typer's context class is private
        """List the verbs in the order of the table."""
        return list(self.verbs)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - as above
        """Import a verb and build its command."""
        verb = self.verbs.get(cmd_name)
        if verb is None:
            return super().get_command(ctx, cmd_name)
        command = self.commands.get(cmd_name)
        if command is None:
            app: typer.Typer = importlib.import_module(verb.module).app
            command = typer.main.get_command(app)
            command.name = cmd_name
            # A single command is its own group; completion and --version belong to the program alone.
            command.params = [p for p in command.params if p.name not in {"install_completion", "show_completion"}]
            self.commands[cmd_name] = command
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 - as above
        """Write the summaries from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.summary) for name, verb in self.verbs.items()])

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
        state = State()

        def run() -> object:
            return super(LazyGroup, self).main(
                args, "maia", complete_var, standalone_mode=False,
                windows_expand_args=windows_expand_args, obj=state, **extra,
            )  # fmt: skip

        with logging_to_stderr(state):
            code = _guarded(run, state)
        if standalone_mode:
            sys.exit(code)
        return code


def _guarded(run: Any, state: State) -> int:  # noqa: ANN401 - a thunk
    try:
        result = run()
        sys.stdout.flush()
    except MaiaError as error:
        code = exit_code(error)
        report_error(error, code=code, as_json=state.json)
    except typer.TyperException as error:
        code = _usage(error, state)
    except (typer.Abort, KeyboardInterrupt):
        report_error(UnavailableError("interrupted", code="INTERRUPTED"), code=ExitCode.INTERRUPTED, as_json=state.json)
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        sys.stdout = None  # the reader went away; there is nobody to tell
        code = ExitCode.FAILED
    except OSError as error:
        what = f"{error.strerror or error}: `{error.filename}`" if error.filename else str(error)
        report_error(
            UnavailableError(what[:1].lower() + what[1:], code="SYSTEM"), code=ExitCode.FAILED, as_json=state.json
        )
        code = ExitCode.FAILED
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
    plain = message.replace("'", "`").rstrip(".")
    report_error(UsageError(plain[:1].lower() + plain[1:]), code=ExitCode.USAGE, as_json=state.json, hint=hint)
    return ExitCode.USAGE
