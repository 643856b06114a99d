"""The program as a whole: help, versions, exit codes, errors, output channels."""

from __future__ import annotations

import importlib
import json
import logging
import re
import runpy
import tomllib
from pathlib import Path
from types import MappingProxyType

import pytest
import typer

from maia.cli import _VERBS
from maia.cli.group import LazyGroup, Verb, installed_verbs
from maia.cli.show.exits import ExitCode, exit_code
from maia.cli.show.output import stands
from maia.errors import (
    ChainError,
    DeniedError,
    EncodingError,
    MaiaError,
    NotFoundError,
    SealError,
    UnavailableError,
    UncheckedError,
    UsageError,
    VerificationError,
)
from maia.version import __version__

_PAGE = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "cli_reference.py"))
command_paths = _PAGE["command_paths"]
help_of = _PAGE["help_of"]
render = _PAGE["render"]

PATHS = list(command_paths())
NO_JSON = {(), ("conformance",), *(path for path in PATHS if path[:1] == ("serve",))}
"""What answers by itself: the program, a conversation in JSON, and services."""
LEAVES = [path for path in PATHS if not any(other[:-1] == path and other != path for other in PATHS if path)]


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_help_of_every_command_shows_an_example(path):
    """Who asks a command for help sees how it is used."""
    text = help_of(path)
    assert text.startswith("Usage: maia")
    assert "Example" in text
    assert f"maia {' '.join(path)}".strip() in text.partition("Example")[2]


@pytest.mark.parametrize("name", _VERBS)
def test_summaries_are_those_of_the_commands(name):
    """The list of verbs says what the verbs say of themselves, though it imports none of them."""
    command = typer.main.get_command(importlib.import_module(_VERBS[name].module).app)
    assert command.help
    if not hasattr(command, "commands"):
        return
    assert command.help.splitlines()[0].rstrip(".").split()[0] == _VERBS[name].summary.rstrip(".").split()[0]


def test_reference_page_is_current(repository: Path):
    """docs/reference/cli.md is what the program says; `python scripts/cli_reference.py` renews it."""
    assert (repository / "docs" / "reference" / "cli.md").read_text("utf-8") == render()


def test_version_and_bare_call(maia):
    """--version prints the version; no verb prints the help."""
    assert maia("--version").out == f"maia {__version__}\n"
    bare = maia()
    assert bare.code == 0
    assert bare.out == maia("--help").out == maia("-h").out


USAGE = {
    "an unknown verb": (["bogus"], "no such command `bogus`"),
    "an unknown option": (["key", "show", "--bogus"], "no such option"),
    "a missing option": (["grant", "--to", "smith"], "missing option `--from`"),
    "a missing argument": (["key", "new"], "missing argument `NAME`"),
    "a value out of range": (["statement", "crl", "--from", "met", "--sequence", "-1"], "--sequence"),
}


@pytest.mark.parametrize("args, words", USAGE.values(), ids=USAGE)
def test_wrong_command_lines_exit_with_2_and_a_hint(maia, args, words):
    """Usage errors look like all errors and say where to read on."""
    ran = maia(*args)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("error: [USAGE] ")
    assert words in ran.err
    assert "hint: try `maia" in ran.err


def test_a_noun_without_a_verb_explains_itself(maia):
    """`maia key` lists its verbs on standard error and exits with 2."""
    ran = maia("key")
    assert (ran.code, ran.out) == (2, "")
    assert "import" in ran.err


def test_errors_in_json_carry_the_exit_code(maia):
    """With --json an error is an object on standard output, and still a line on standard error."""
    ran = maia("key", "show", "nobody", "--json")
    assert ran.data == {
        "code": 5, "error": "NO_SUCH_KEY", "message": "no key `nobody` in this home", "hint": ran.data["hint"],
    }  # fmt: skip
    assert ran.err.startswith("error: [NO_SUCH_KEY] ")
    missing = maia("grant", "--json")
    assert (missing.code, missing.data["error"]) == (2, "USAGE")


CODES = {
    "usage": (UsageError("x"), 2),
    "denied": (DeniedError("x"), 3),
    "not verified": (VerificationError("x"), 4),
    "a kind of not verified": (ChainError("x"), 4),
    "could not be checked": (UncheckedError("x"), 4),
    "not found": (NotFoundError("x"), 5),
    "unavailable": (UnavailableError("x"), 1),
    "malformed": (EncodingError("x"), 1),
    "seal": (SealError("x"), 1),
}


@pytest.mark.parametrize("error, code", CODES.values(), ids=CODES)
def test_exit_codes_follow_the_families(error, code):
    """Who must act decides the exit code."""
    assert exit_code(error) == code


def _raiser(error: BaseException) -> LazyGroup:
    class Group(LazyGroup):
        verbs = MappingProxyType({})

    program = typer.Typer(cls=Group, rich_markup_mode=None)

    @program.callback(invoke_without_command=True)
    def run() -> None:
        raise error

    return typer.main.get_command(program)


@pytest.mark.parametrize(
    "error, code, words",
    [
        (KeyboardInterrupt(), 130, ""),
        (typer.Abort(), 130, "interrupted"),
        (PermissionError(13, "Permission denied", "x.key"), 1, "error: [SYSTEM] permission denied: `x.key`"),
        (typer.Exit(3), 3, ""),
        (MaiaError("say no"), 1, "error: [MAIA] say no"),
    ],
    ids=["keyboard", "abort", "system", "exit", "root"],
)
def test_every_end_has_its_exit_code(capsys, error, code, words):
    """Interruptions exit with 130, refusals of the system with 1, and none shows a traceback."""
    with pytest.raises(SystemExit) as caught:
        _raiser(error).main([])
    assert caught.value.code == code
    assert words in capsys.readouterr().err


def test_a_fault_of_the_program_is_not_hidden():
    """An error nobody foresaw is no exit code: it surfaces."""
    with pytest.raises(ZeroDivisionError):
        _raiser(ZeroDivisionError()).main([])


def test_a_verb_is_imported_when_it_is_asked_for(monkeypatch):
    """The group imports one verb, once, and knows no others but those that other programs add."""
    monkeypatch.setattr("maia.cli.group.installed_verbs", lambda: {"demo": Verb("maia.nowhere", "Play.")})

    class Group(LazyGroup):
        verbs = MappingProxyType({"doctor": Verb("maia.cli.doctor.command", "Look.")})

    group = Group(name="maia")
    command = group.get_command(None, "doctor")
    assert command is group.get_command(None, "doctor")
    assert command.name == "doctor"
    assert group.get_command(None, "bogus") is None
    assert group.list_commands(None) == ["doctor", "demo"]


def test_quiet_silences_notes_and_not_errors(maia):
    """-q keeps the note about an unsealed key back; an error is still said."""
    assert "not sealed" in maia("key", "new", "a", "--no-passphrase").err
    assert maia("-q", "key", "new", "b", "--no-passphrase").err == ""
    assert maia("-q", "key", "new", "b", "--no-passphrase").err.startswith("error: [KEY_EXISTS]")


def test_logging_is_left_as_it_was(maia):
    """A command that ran in this process leaves no handler behind."""
    before = (list(logging.getLogger("maia").handlers), logging.getLogger("maia").level)
    maia("-vv", "key", "show")
    assert (list(logging.getLogger("maia").handlers), logging.getLogger("maia").level) == before


def test_only_json_is_on_stdout(police):
    """What reading commands print with --json parses as one object with the exit code."""
    target = ("--as", "smith", "--type", "pito/uk.gov.pito.Numberplate@1", "--action", "subscribe")
    for args in (
        ("key", "show"), ("cert", "show"), ("prove", *target), ("explain", *target), ("verify",), ("verify", *target),
        ("statement", "show"), ("doctor",), ("demo", "trust"),
    ):  # fmt: skip
        ran = police(*args, "--json")
        assert ran.data["code"] == ran.code == 0, args
        assert ran.out.count("\n") == 1, args


def test_colour_only_where_it_is_wanted(police):
    """FORCE_COLOR colours a pipe, NO_COLOR takes colours off, a pipe has none by itself."""
    assert "\x1b[" in police("cert", "show", NO_COLOR=None, FORCE_COLOR="1").out
    assert "\x1b[3" not in police("cert", "show", NO_COLOR="1", FORCE_COLOR="1").out
    assert "\x1b[" not in police("cert", "show", NO_COLOR=None).out


def test_completion_knows_verbs_keys_and_certificates(police):
    """The shell gets verbs, key names and certificate ids."""

    def complete(words: str, index: int) -> list[str]:
        return police(_MAIA_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(index)).out.split()

    assert complete("maia gr", 1) == ["grant"]
    assert complete("maia cert s", 2) == ["show"]
    assert complete("maia grant --from sm", 3) == ["smith"]
    ids = sorted(path.stem for path in (police.home / "certificates").iterdir())
    assert sorted(complete("maia cert show ", 3)) == ids


def test_exit_codes_are_documented(repository: Path):
    """The page names every code."""
    page = (repository / "docs" / "reference" / "cli.md").read_text("utf-8")
    assert all(f"| {code.value} |" in page for code in ExitCode)


def test_conformance_answers_on_the_standard_streams(maia):
    """One object a line in, one a line out; the example of the help works."""
    question = re.search(r"echo '(.*)' \|", help_of(("conformance",)))
    assert question is not None
    ran = maia("conformance", stdin=f'{question[1]}\n{{"id": 8, "verb": "no.such"}}\n')
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert answers[0] == {"id": 1, "result": True}
    assert (answers[1]["id"], answers[1]["error"]) == (8, "unknown-verb")


def test_programs_beside_the_product_add_their_verbs_without_being_imported(repository: Path):
    """Their entry points say name, summary and module; `maia --help` lists them and imports none of them."""
    declared = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    names = {name.partition(" - ")[0] for name in declared["maia.verbs"]}
    assert names == {"bench", "conformance", "demo"}
    assert {name: verb.module for name, verb in installed_verbs().items()} == {
        name.partition(" - ")[0]: module for name, module in declared["maia.verbs"].items()
    }
    for verb in installed_verbs().values():
        assert verb.summary.endswith(".")
        assert verb.summary in help_of(())
        assert importlib.import_module(verb.module).app is not None


NEAR = {
    "a verb": (["grnt"], "no such command `grnt`; did you mean `grant`?"),
    "a verb of a noun": (["key", "shwo"], "no such command `shwo`; did you mean `show`?"),
    "an option": (["grant", "--form", "x"], "no such option: --form; did you mean `--from`?"),
    "a key": (["key", "show", "smiht"], "no key `smiht` in this home; did you mean `smith`?"),
    "an action": (
        ["prove", "--as", "smith", "--network", "pito/n", "--action", "conect"], "did you mean `connect`?",
    ),
}  # fmt: skip


@pytest.mark.parametrize("args, words", NEAR.values(), ids=NEAR)
def test_the_nearest_word_is_proposed(police, args, words):
    """Verbs, options, keys and actions that are nearly right."""
    ran = police(*args)
    assert ran.code in (1, 2, 5)
    assert words in ran.err


def test_an_interruption_says_what_stands(police, monkeypatch):
    """Ctrl-C tells what is true now."""

    def interrupted(*_: object, **__: object) -> None:
        stands("2 of 3 files are published")
        raise KeyboardInterrupt

    monkeypatch.setattr("maia.cli.cert.command.note", interrupted)
    monkeypatch.setattr("maia.cli.cert.command.draw", interrupted)
    ran = police("cert", "show")
    assert ran.code == 130
    assert ran.err == "error: [INTERRUPTED] interrupted; 2 of 3 files are published\n"


@pytest.mark.parametrize("path", [path for path in LEAVES if path not in NO_JSON], ids=" ".join)
def test_every_command_speaks_json(path):
    """Machines may ask any command."""
    assert "--json" in help_of(path)
