"""The reference page of the command line, from what the program itself says.

Run ``python scripts/cli_reference.py`` to renew the page; a test holds the two together.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import typer
from typer.core import TyperGroup

from maia.cli import app

TARGET = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
_WIDTH = "100"
_HEAD = """# Command line

What `maia --help` and the help of its commands say; this page is generated from them.

## Where things live

A command works on a folder, the *home*: the current one, `--home DIR`, or the environment variable `MAIA_HOME`.

| file | holds |
|---|---|
| `keys/NAME.key` | a private key, mode 0600, sealed with a passphrase unless it was made with `--no-passphrase` |
| `keys/NAME.pub` | its public key |
| `certificates/*.cert` | certificates, one a file, named by the beginning of their id |
| `statements` | the validity statements that were accepted |

## How principals are written

| text | principal |
|---|---|
| `smith` | a key of this home, by file name |
| `k3f7-u5wd` | a known key, by its fingerprint or at least four characters of its beginning |
| `d75a98…511a` | a key, by its 64 hexadecimal digits |
| `hash:0f1e…` | a key that is known only by its hash, 64 hexadecimal digits |
| `met: Met Brokers` | a local name of `met`; `met: brokers: london` follows two names |
| `2 of (smith, jones, met: Met Brokers)` | a threshold; members may be thresholds again |
| `(name (public-key …) "a:b")` | anything, as an S-expression |

## How rights are written

`--type OWNER/NAME@VERSION` and `--network OWNER/NAME` start with the principal that owns the thing. `NAME` may hold
`*`, `VERSION` is exact or `*`, which is also meant when it is left out; `--type '*'` and `--network '*'` stand for all
of them, whoever owns them. `--action` and `--attribute` may be repeated, and mean everything when left out. The
owner of a type may be left out where the home keeps types of that name of one owner only. An attribute is given by its
name, with or without a demand on its value: `numberplate`, `numberplate='AE05 XYZ'`, `speed>=500`, `speed!=0`,
`location in (Victoria, Paddington)`, `numberplate prefix AE`; or as `uid:3265`, which is the only way where the home
does not keep the type. Values are read as the attribute's type demands; where that is not known, by how they are
written: `500` is an integer, `1.5` a decimal number, `true` a boolean, `2026-06-01` a date, `2026-06-01T09:00:00Z` an
instant; anything else, and anything in quotes, is text. `--tag` takes any other tag as an S-expression.

Instants are written `2026-12-31T00:00:00Z`, `2026-12-31` (its first second, UTC), `now`, or `+90d` from now (`s`, `m`,
`h`, `d`, `w`, `y`).

## Output, exit codes and environment

Nothing but data goes to standard output; notes, prompts and errors go to standard error. With `--json` a command prints
one object, whose `code` is the exit code. An error reads `error: [CODE] message`, with a hint where there is something
to do; [the codes](errors.md) are stable.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed |
| 2 | the command line is wrong |
| 3 | access denied: the right is not held, or cannot be given |
| 4 | verification failed |
| 5 | not found |
| 6 | what the audit says was decided is decided otherwise |
| 130 | interrupted |

| variable | effect |
|---|---|
| `MAIA_HOME` | the home, in place of the current folder |
| `MAIA_PASSPHRASE` | the passphrase, in place of a prompt; better `--passphrase-fd N` or `--passphrase-file FILE` |
| `MAIA_PASSPHRASE_FD` | for Python and Spark: the number of an open descriptor whose next line is the passphrase |
| `NO_COLOR`, `FORCE_COLOR` | no colours, or colours also where the output is no terminal |
| `COLUMNS` | the width of trees and tables |

`maia --install-completion` installs completion for the shell; key names and certificate ids complete too.
"""


def render() -> str:
    """Write the page."""
    parts = [_HEAD]
    for path in command_paths():
        title = " ".join(("maia", *path))
        parts.append(f"## {title}\n\n```text\n{help_of(path)}\n```\n")
    return "\n".join(parts)


def command_paths() -> Iterator[tuple[str, ...]]:
    """List the program, its verbs, and the verbs of its nouns, in the order of the help."""
    yield ()
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    for name in root.list_commands(None):  # type: ignore[arg-type] # the table needs no context
        yield (name,)
        command = root.get_command(None, name)  # type: ignore[arg-type]
        yield from _inner((name,), command)


def _inner(path: tuple[str, ...], command: object) -> Iterator[tuple[str, ...]]:
    """List the verbs of a noun, and those of the nouns inside it."""
    if isinstance(command, TyperGroup):
        for name, found in command.commands.items():
            if not found.hidden:
                yield (*path, name)
                yield from _inner((*path, name), found)


def help_of(path: tuple[str, ...]) -> str:
    """Ask the program for the help of one command, at a fixed width."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _WIDTH
    try:
        with redirect_stdout(io.StringIO()) as out:
            typer.main.get_command(app).main([*path, "--help"], prog_name="maia", standalone_mode=False)
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return "\n".join(line.rstrip() for line in out.getvalue().strip().splitlines())


if __name__ == "__main__":
    TARGET.write_text(render(), "utf-8")
