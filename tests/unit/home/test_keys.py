"""Key files: sealed, closed to others, never overwritten, whole or absent."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from maia.errors import EncodingError, KeyFormatError, MaiaError, NotFoundError, UnavailableError, UsageError
from maia.home import read_key, read_public_key, write_key, write_public_key
from maia.principals import KeySigner, seal_private_key

SEED = bytes(range(32))
SIGNER = KeySigner(SEED)
PASSPHRASE = "correct horse battery staple"


def mode(path: Path) -> int:
    """The permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def never() -> NoReturn:
    """A question for a passphrase that must not be asked."""
    raise AssertionError("asked for a passphrase")


def test_a_sealed_key_comes_back_under_its_passphrase(tmp_path: Path) -> None:
    """Write, read: the same key."""
    write_key(tmp_path / "met.key", SIGNER, passphrase=PASSPHRASE)
    assert read_key(tmp_path / "met.key", passphrase=lambda: PASSPHRASE).export_seed() == SEED


def test_an_unsealed_key_says_so_and_asks_for_nothing(tmp_path: Path) -> None:
    """Without a passphrase the file carries the word, and reading never asks."""
    write_key(tmp_path / "met.key", SIGNER, passphrase=None)
    assert b"8:unsealed" in (tmp_path / "met.key").read_bytes()
    assert read_key(tmp_path / "met.key", passphrase=never).export_seed() == SEED


@pytest.mark.threat("T75")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_a_private_key_file_is_closed_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    """Mode 0600 for the file and 0700 for the folder that was made for it."""
    before = os.umask(umask)
    try:
        write_key(tmp_path / "keys" / "met.key", SIGNER, passphrase=None)
    finally:
        os.umask(before)
    assert (mode(tmp_path / "keys" / "met.key"), mode(tmp_path / "keys")) == (0o600, 0o700)


@pytest.mark.threat("T75")
def test_a_private_key_is_closed_before_it_has_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each moment of the write, no file of the folder is open to others."""
    seen: list[int] = []
    fsync = os.fsync

    def watch(descriptor: int) -> None:
        seen.extend(mode(path) for path in tmp_path.iterdir())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    write_key(tmp_path / "met.key", SIGNER, passphrase=None)
    assert set(seen) == {0o600}


@pytest.mark.threat("T75")
def test_nothing_secret_is_left_on_disk_or_in_messages(tmp_path: Path) -> None:
    """Neither seed nor passphrase stands in any file, nor in the error of a wrong passphrase, nor in a repr."""
    write_key(tmp_path / "met.key", SIGNER, passphrase=PASSPHRASE)
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    with pytest.raises(KeyFormatError) as caught:
        read_key(tmp_path / "met.key", passphrase=lambda: "wrong " + PASSPHRASE)
    said = f"{caught.value!r} {caught.value} {SIGNER!r}".encode()
    for secret in (SEED, SEED.hex().encode(), PASSPHRASE.encode()):
        assert secret not in written
        assert secret not in said


WATCHED = """
import os, sys
from pathlib import Path
from maia.principals import KeySigner
from maia.home import read_key, write_key
path, passphrase, seen = Path(sys.argv[1]), sys.stdin.readline().strip(), []
def watch(event, arguments):
    if event in {"subprocess.Popen", "os.exec", "os.fork", "os.posix_spawn", "os.putenv", "os.system"}:
        seen.append(event)
sys.addaudithook(watch)
write_key(path, KeySigner.generate(), passphrase=passphrase)
read_key(path, passphrase=lambda: passphrase)
world = Path("/proc/self/cmdline").read_bytes() + Path("/proc/self/environ").read_bytes()
print(seen, passphrase.encode() in world)
"""


@pytest.mark.threat("T75")
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="this system shows no argument lists")
def test_a_passphrase_reaches_no_argument_list_and_no_environment(tmp_path: Path) -> None:
    """Sealing and opening start no other program, change no environment, and the process's own show nothing."""
    run = subprocess.run(
        [sys.executable, "-c", WATCHED, str(tmp_path / "met.key")],
        input=f"{PASSPHRASE}\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "[] False"


OPEN_MODES = {"group may read": 0o640, "others may read": 0o604, "others may write": 0o602, "all": 0o666, "run": 0o610}


@pytest.mark.threat("T75")
@pytest.mark.parametrize("open_mode", OPEN_MODES.values(), ids=OPEN_MODES)
def test_a_key_file_that_others_may_touch_is_not_read(tmp_path: Path, open_mode: int) -> None:
    """A key that may be known is refused, even before the passphrase is asked for."""
    path = tmp_path / "met.key"
    write_key(path, SIGNER, passphrase=PASSPHRASE)
    path.chmod(open_mode)
    with pytest.raises(KeyFormatError) as caught:
        read_key(path, passphrase=never)
    assert caught.value.code == "KEY_FILE_MODE"


@pytest.mark.threat("T75")
def test_a_key_file_of_somebody_else_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted key is refused."""
    path = tmp_path / "met.key"
    write_key(path, SIGNER, passphrase=None)
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(KeyFormatError) as caught:
        read_key(path)
    assert caught.value.code == "KEY_FILE_MODE"


@pytest.mark.parametrize("answer", ["wrong", "", PASSPHRASE + " ", PASSPHRASE.upper()])
def test_a_wrong_passphrase_has_one_code(tmp_path: Path, answer: str) -> None:
    """Near misses too."""
    write_key(tmp_path / "met.key", SIGNER, passphrase=PASSPHRASE)
    with pytest.raises(KeyFormatError) as caught:
        read_key(tmp_path / "met.key", passphrase=lambda: answer)
    assert caught.value.code == "KEY_PASSPHRASE"


def test_a_sealed_key_without_a_way_to_ask_is_refused(tmp_path: Path) -> None:
    """No terminal, no key."""
    write_key(tmp_path / "met.key", SIGNER, passphrase=PASSPHRASE)
    with pytest.raises(KeyFormatError) as caught:
        read_key(tmp_path / "met.key")
    assert caught.value.code == "KEY_PASSPHRASE"


@pytest.mark.parametrize("kind", ["file", "dangling link", "folder"])
def test_a_key_never_takes_the_place_of_something(tmp_path: Path, kind: str) -> None:
    """Whatever stands at the path stays."""
    path = tmp_path / "met.key"
    if kind == "file":
        path.write_bytes(b"dear")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError) as caught:
        write_key(path, SIGNER, passphrase=None)
    assert caught.value.code == "KEY_EXISTS"
    assert not (tmp_path / "elsewhere").exists()
    assert kind != "file" or path.read_bytes() == b"dear"


def test_two_writers_cannot_both_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that appears after the first look is not overwritten either."""
    path = tmp_path / "met.key"
    path.write_bytes(b"first")
    monkeypatch.setattr(os.path, "lexists", lambda _: False)
    with pytest.raises(UsageError) as caught:
        write_key(path, SIGNER, passphrase=None)
    assert caught.value.code == "KEY_EXISTS"
    assert [item.name for item in tmp_path.iterdir()] == ["met.key"]
    assert path.read_bytes() == b"first"


def test_an_empty_passphrase_seals_nothing(tmp_path: Path) -> None:
    """Pressing return is no passphrase."""
    with pytest.raises(UsageError) as caught:
        write_key(tmp_path / "met.key", SIGNER, passphrase="")
    assert caught.value.code == "EMPTY_PASSPHRASE"
    assert not (tmp_path / "met.key").exists()


def test_two_files_of_one_key_share_no_salt_or_nonce(tmp_path: Path) -> None:
    """Chance is fresh for each file."""
    for name in ("a", "b"):
        write_key(tmp_path / name, SIGNER, passphrase=PASSPHRASE)
    first, second = ((tmp_path / name).read_bytes() for name in ("a", "b"))
    salt = first.index(b"6:scrypt16:") + len(b"6:scrypt16:")
    nonce = first.index(b"11:aes-256-gcm12:") + len(b"11:aes-256-gcm12:")
    assert first[salt : salt + 16] != second[salt : salt + 16]
    assert first[nonce : nonce + 12] != second[nonce : nonce + 12]


def test_an_interrupted_write_leaves_no_key_and_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk refuses, neither half a key nor its draft stays."""

    def full(*_: object) -> NoReturn:
        raise OSError(28, "no space")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(UnavailableError) as caught:
        write_key(tmp_path / "met.key", SIGNER, passphrase=None)
    assert caught.value.code == "FILE_UNAVAILABLE"
    assert list(tmp_path.iterdir()) == []


BROKEN = {
    "nothing": b"",
    "text": b"hello",
    "another expression": b"(4:cert)",
    "a cut file": seal_private_key(SEED, "x", salt=bytes(16), nonce=bytes(12))[:-1],
    "another algorithm": b"(11:private-key(7:version1:1)(3:rsa1:x)(8:unsealed1:y))",
    "a long file": b"(" * 5000,
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_what_is_no_key_file_is_refused(tmp_path: Path, data: bytes) -> None:
    """Only errors of this house come out."""
    path = tmp_path / "met.key"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises((KeyFormatError, EncodingError)):
        read_key(path, passphrase=never)


def test_a_pipe_in_place_of_a_key_does_not_block(tmp_path: Path) -> None:
    """Only regular files are read."""
    os.mkfifo(tmp_path / "met.key", 0o600)
    with pytest.raises(EncodingError) as caught:
        read_key(tmp_path / "met.key")
    assert caught.value.code == "FILE_KIND"


@pytest.mark.parametrize("name", ["missing.key", "no/such/folder.key"])
def test_a_missing_key_is_not_found(tmp_path: Path, name: str) -> None:
    """The error says which file."""
    with pytest.raises(NotFoundError, match=name):
        read_key(tmp_path / name)


def test_a_path_that_is_none_is_an_error_of_this_house(tmp_path: Path) -> None:
    """A NUL in a path is no way to a traceback."""
    for call in (read_key, lambda p: write_key(p, SIGNER, passphrase=None), read_public_key):
        with pytest.raises(MaiaError):
            call(tmp_path / "a\0b" / "c")


def test_a_public_key_is_text_for_everyone(tmp_path: Path) -> None:
    """Mode 0644, one line in the advanced form, and it can be replaced."""
    path = tmp_path / "met.pub"
    write_public_key(path, KeySigner(bytes(32)).public_key)
    write_public_key(path, SIGNER.public_key)
    assert path.read_text() == f"(public-key (ed25519 #{SIGNER.public_key.raw.hex()}#))\n"
    assert mode(path) == 0o644
    assert read_public_key(path) == SIGNER.public_key


BAD_PUBLIC = {
    "small order": f"(public-key (ed25519 #{bytes(32).hex()}#))",
    "off the curve": f"(public-key (ed25519 #{(2).to_bytes(32, 'little').hex()}#))",
    "a hash": f"(hash sha256 #{bytes(32).hex()}#)",
    "another kind": "(public-key (rsa #00#))",
    "not ascii": "(public-key (ed25519 «»))",
    "nothing": "",
    "two": f"(public-key (ed25519 #{SIGNER.public_key.raw.hex()}#)) x",
}


@pytest.mark.parametrize("text", BAD_PUBLIC.values(), ids=BAD_PUBLIC)
def test_a_bad_public_key_file_is_refused(tmp_path: Path, text: str) -> None:
    """A key from outside passes the full test."""
    (tmp_path / "x.pub").write_text(text, "utf-8")
    with pytest.raises(KeyFormatError):
        read_public_key(tmp_path / "x.pub")


CRASHING = """
import os, resource, signal, sys
from pathlib import Path
from maia.home import read_key
soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
read_key(Path(sys.argv[1]))
print(resource.getrlimit(resource.RLIMIT_CORE), flush=True)
os.kill(os.getpid(), signal.SIGABRT)
"""


@pytest.mark.threat("T75")
def test_a_process_that_read_a_key_leaves_no_core(tmp_path: Path) -> None:
    """Whatever it was allowed before, a process that holds a key dies without writing its memory down."""
    path = tmp_path / "met.key"
    write_key(path, SIGNER, passphrase=None)
    command = [sys.executable, "-c", CRASHING, str(path)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == -signal.SIGABRT
    assert run.stdout.strip() == "(0, 0)"
    assert [found.name for found in tmp_path.iterdir()] == ["met.key"]


@pytest.mark.threat("T75")
def test_the_command_line_leaves_no_core() -> None:
    """Nor does `maia`, nor what it starts."""
    watched = (
        "import resource, maia.cli as c; c.app = lambda: print(resource.getrlimit(resource.RLIMIT_CORE)); c.main()"
    )
    run = subprocess.run([sys.executable, "-c", watched], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "(0, 0)"
