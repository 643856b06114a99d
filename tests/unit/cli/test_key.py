"""`maia key`: fresh, shown and imported keys, and where passphrases come from."""

from __future__ import annotations

import json
import os
import re
import runpy
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from maia.cli.read import passphrases
from maia.home import read_key, read_public_key

_PAGE = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "cli_reference.py"))
command_paths = _PAGE["command_paths"]
help_of = _PAGE["help_of"]

HEX = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
SMALL_ORDER = "01" + "00" * 31


def test_without_a_terminal_nobody_is_asked(tmp_path):
    """A prompt that would show the passphrase is none: the command says what is missing, and warns of nothing."""
    ran = subprocess.run(
        [sys.executable, "-m", "maia.cli", "key", "new", "smith", "--home", str(tmp_path)], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, start_new_session=True, timeout=60,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAIA_")},
    )  # fmt: skip
    assert ran.returncode == 2
    assert "[PASSPHRASE_MISSING] there is no terminal to ask for the passphrase for `smith`" in ran.stderr
    assert "Warning" not in ran.stderr
    assert not (tmp_path / "keys").exists()


def test_new_key_is_closed_to_others_and_sealed(maia):
    """The private file has mode 0600 and opens only with the passphrase; the public one agrees with it."""
    ran = maia("key", "new", "smith", "--json", MAIA_PASSPHRASE="correct horse")
    assert ran.code == 0
    path = maia.home / "keys" / "smith.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    signer = read_key(path, passphrase=lambda: "correct horse")
    public = read_public_key(path.with_suffix(".pub"))
    assert signer.public_key == public
    assert ran.data["key"] == public.raw.hex()
    assert "correct horse" not in ran.out + ran.err + str(path.read_bytes())


def test_passphrase_comes_from_file_before_environment_before_prompt(maia, tmp_path, monkeypatch):
    """A file wins over the environment, the environment over the prompt; the prompt asks twice."""
    file = tmp_path / "secret"
    file.write_text("from file\nsecond line\n")
    maia("key", "new", "a", "--passphrase-file", str(file), MAIA_PASSPHRASE="from environment")
    maia("key", "new", "b", MAIA_PASSPHRASE="from environment")
    asked: list[tuple[str, bool]] = []

    def prompt(text: str, *, hide_input: bool, confirmation_prompt: bool, err: bool) -> str:
        asked.append((text, confirmation_prompt))
        assert hide_input
        assert err
        return "from prompt"

    monkeypatch.setattr(passphrases.typer, "prompt", prompt)
    assert maia("key", "new", "c").code == 0
    for name, secret in (("a", "from file"), ("b", "from environment"), ("c", "from prompt")):
        assert read_key(maia.home / "keys" / f"{name}.key", passphrase=lambda secret=secret: secret)
    assert asked == [("Passphrase for `c`", True)]


REFUSED = {
    "no passphrase at all": ([], {}, "PASSPHRASE_MISSING"),
    "an empty passphrase": ([], {"MAIA_PASSPHRASE": ""}, "PASSPHRASE_MISSING"),
    "an endless passphrase": ([], {"MAIA_PASSPHRASE": "x" * 5000}, "PASSPHRASE_MISSING"),
    "both kinds of passphrase": (["--no-passphrase", "--passphrase-file", "x"], {}, "PASSPHRASE_OPTIONS"),
}


@pytest.mark.parametrize("args, environment, code", REFUSED.values(), ids=REFUSED)
@pytest.mark.filterwarnings("ignore::getpass.GetPassWarning")
def test_key_without_a_usable_passphrase_is_not_made(maia, monkeypatch, args, environment, code):
    """Nothing is written when it is unclear how to seal it."""
    monkeypatch.setattr(passphrases.typer, "prompt", _end_of_input)
    ran = maia("key", "new", "smith", *args, **environment)
    assert ran.code == 2
    assert f"[{code}]" in ran.err
    assert not (maia.home / "keys" / "smith.key").exists()


def _end_of_input(*_: object, **__: object) -> str:
    raise EOFError


NAMES = ["../smith", "a/b", ".hidden", "", "x" * 65, "smith key", "smith\n", "-x"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_never_leaves_the_folder(maia, name):
    """Names that would be paths, hidden files or options are refused."""
    ran = maia("key", "new", "--no-passphrase", "--", name)
    assert ran.code == 2
    assert "[KEY_NAME]" in ran.err
    assert not maia.home.exists()


def test_a_key_is_never_overwritten(maia):
    """A second key of the same name is refused, private or public."""
    maia.keys("smith")
    before = (maia.home / "keys" / "smith.key").read_bytes()
    assert maia("key", "new", "smith", "--no-passphrase").code == 2
    assert "[KEY_EXISTS]" in maia("key", "import", "smith", HEX).err
    assert (maia.home / "keys" / "smith.key").read_bytes() == before
    assert maia("key", "import", "jones", HEX).code == 0
    assert maia("key", "import", "jones", HEX).code == 0
    assert "[KEY_EXISTS]" in maia("key", "new", "jones", "--no-passphrase").err


def test_show_lists_names_fingerprints_and_what_is_private(maia):
    """An imported key has no private half; a key is found by name, fingerprint and digits."""
    maia.keys("smith")
    maia("key", "import", "jones", HEX)
    rows = {row["name"]: row for row in maia("key", "show", "--json").data["keys"]}
    assert (rows["smith"]["private"], rows["jones"]["private"]) == (True, False)
    assert rows["jones"]["fingerprint"] == "pznk-zeg4-vaa3-3y45"
    for text in ("jones", "pznk-zeg4", "pznkzeg4vaa33y45", HEX, HEX.upper()):
        assert maia("key", "show", text, "--json").data["keys"][0]["key"] == HEX
    table = maia("key", "show").out
    assert "jones" in table
    assert rows["smith"]["key"] in table
    assert maia("key", "show", "pzn").code == 5


def test_show_of_an_empty_home_says_what_to_do(maia):
    """No data, a note on standard error, exit 0."""
    ran = maia("key", "show")
    assert (ran.code, ran.out) == (0, "")
    assert "maia key new" in ran.err


def test_foreign_files_in_the_key_folder_are_refused_or_ignored(maia):
    """A public key file that holds no key is an error; a file whose name cannot be a key's is not read."""
    maia.keys("smith")
    (maia.home / "keys" / "no name.pub").write_text("(")
    assert maia("key", "show").code == 0
    (maia.home / "keys" / "bad.pub").write_text("(public-key)")
    ran = maia("key", "show")
    assert ran.code == 1
    assert "[KEY_FILE_SHAPE]" in ran.err


def test_import_of_public_keys(maia, tmp_path):
    """Digits, PEM, OpenSSH lines and S-expressions give one key; standard input works."""
    key = Ed25519PrivateKey.generate().public_key()
    raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
    (tmp_path / "pem").write_bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    (tmp_path / "ssh").write_bytes(key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    (tmp_path / "sexp").write_text(f"(public-key (ed25519 #{raw}#))")
    for name in ("pem", "ssh", "sexp"):
        assert maia("key", "import", name, str(tmp_path / name), "--json").data["key"] == raw
    assert maia("key", "import", "stdin", "-", "--json", stdin=raw).data["key"] == raw


IMPORTS = {
    "a small-order point": (SMALL_ORDER, "KEY_SMALL_ORDER", 1),
    "a point that is not canonical": ("ff" * 31 + "7f", "KEY_NOT_CANONICAL", 1),
    "no key": ("hello", "KEY_IMPORT", 1),
    "a folder": (".", "NO_SUCH_FILE", 5),
}


@pytest.mark.parametrize("source, code, exits", IMPORTS.values(), ids=IMPORTS)
def test_bad_public_keys_are_refused_at_the_door(maia, source, code, exits):
    """A key under which anybody could sign never gets a name."""
    ran = maia("key", "import", "evil", source)
    assert ran.code == exits
    assert f"[{code}]" in ran.err
    assert not (maia.home / "keys" / "evil.pub").exists()


def test_import_of_private_keys(maia, tmp_path):
    """A PEM file comes in sealed anew; one with a passphrase of its own asks for it."""
    key = Ed25519PrivateKey.generate()
    raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
    (tmp_path / "open.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    ran = maia("key", "import", "a", str(tmp_path / "open.pem"), "--private", "--json", MAIA_PASSPHRASE="new")
    assert ran.data["key"] == raw
    assert read_key(maia.home / "keys" / "a.key", passphrase=lambda: "new").public_key.raw.hex() == raw
    sealed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"old"))
    (tmp_path / "sealed.pem").write_bytes(sealed)
    args = ("key", "import", "b", str(tmp_path / "sealed.pem"), "--private", "--no-passphrase")
    assert maia(*args, MAIA_PASSPHRASE="old").code == 0
    assert "[KEY_PASSPHRASE]" in maia("key", "import", "c", *args[3:], MAIA_PASSPHRASE="wrong").err
    assert "[KEY_IMPORT]" in maia("key", "import", "d", HEX, "--private", "--no-passphrase").err


def test_no_command_takes_a_passphrase_as_an_argument():
    """Command lines are seen by everybody on the machine."""
    options = {
        word
        for path in command_paths()
        for line in help_of(path).splitlines()
        for word in re.findall(r"^ +(--[a-z-]*(?:pass|secret)[a-z-]*(?: [A-Z]+)?)", line)
    }
    assert options == {"--passphrase-fd N", "--passphrase-file FILE", "--no-passphrase"}


def test_json_of_new_key_is_one_object(maia):
    """Name, fingerprint and public key, nothing secret."""
    data = json.loads(maia("key", "new", "a", "--no-passphrase", "--json").out)
    assert set(data) == {"code", "name", "fingerprint", "key"}


def test_a_passphrase_comes_from_an_open_descriptor(maia):
    """`--passphrase-fd N` takes the next line of a descriptor, so two keys find theirs one after the other."""
    reading, writing = os.pipe()
    os.write(writing, b"one horse\ntwo horses\n")
    os.close(writing)
    try:
        assert maia("key", "new", "pito", "--passphrase-fd", str(reading)).code == 0
        assert maia("key", "new", "met", "--passphrase-fd", str(reading)).code == 0
    finally:
        os.close(reading)
    assert read_key(maia.home / "keys" / "pito.key", passphrase=lambda: "one horse")
    assert read_key(maia.home / "keys" / "met.key", passphrase=lambda: "two horses")
    closed = maia("key", "new", "smith", "--passphrase-fd", str(reading))
    assert closed.code == 2
    assert "[PASSPHRASE_MISSING]" in closed.err
    assert maia("key", "new", "x", "--no-passphrase", "--passphrase-fd", "0").code == 2


def test_a_passphrase_file_that_is_open_or_missing_is_named(maia, tmp_path):
    """Others who may read it are warned of; one that is not there is an error with the option's name."""
    file = tmp_path / "secret"
    file.write_text("from file\n")
    file.chmod(0o644)
    ran = maia("key", "new", "a", "--passphrase-file", str(file))
    assert (ran.code, "others may touch the passphrase file" in ran.err) == (0, True)
    file.chmod(0o600)
    assert "others may touch" not in maia("key", "new", "b", "--passphrase-file", str(file)).err
    ran = maia("key", "new", "c", "--passphrase-file", str(tmp_path / "nothing"))
    assert (ran.code, "PASSPHRASE_MISSING" in ran.err, "--passphrase-file" in ran.err) == (2, True, True)
