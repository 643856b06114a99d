"""The directory store: whole, durable, and deaf to what is no regular file."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from maia.errors import EncodingError, NotFoundError, UnavailableError, UsageError
from maia.log import DirectoryStore


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    """A store in a folder that does not exist yet."""
    return DirectoryStore(tmp_path / "store")


def test_an_object_is_created_once_and_exchanged_by_put(store: DirectoryStore) -> None:
    """`put_new` finds a taken name and changes nothing; `put` exchanges."""
    assert store.put_new("a/b/one", b"first")
    assert not store.put_new("a/b/one", b"second")
    assert store.get("a/b/one", limit=10) == b"first"
    store.put("a/b/one", b"third")
    assert store.get("a/b/one", limit=10) == b"third"
    store.delete("a/b/one")
    store.delete("a/b/one")
    with pytest.raises(NotFoundError):
        store.get("a/b/one", limit=10)
    assert [path.name for path in (store.path / "a" / "b").iterdir()] == []


def test_listing_is_ordered_bounded_and_knows_folders_from_objects(store: DirectoryStore) -> None:
    """Names come in order, after a name, at most so many; parts in the making are not listed."""
    for name in ("c", "a", "b", ".hidden"):
        store.put(f"x/{name}", b"")
    store.put("x/folder/inner", b"")
    assert store.list_after("x", "", limit=10) == ["a", "b", "c"]
    assert store.list_after("x", "a", limit=1) == ["b"]
    assert store.list_folders("x", "", limit=10) == ["folder"]
    assert store.list_folders("nowhere", "", limit=10) == []


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _dangling(path: Path) -> None:
    path.symlink_to("/nowhere/at/all")


def _to_a_file(path: Path) -> None:
    path.with_name("target").write_bytes(b"elsewhere")
    path.symlink_to("target")


def _folder(path: Path) -> None:
    (path / "inner").mkdir(parents=True)


def _socket(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


def _large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


UNFIT = {
    "a pipe": _fifo,
    "a link to an endless device": _endless,
    "a link to itself": _loop,
    "a link to nothing": _dangling,
    "a link to a file": _to_a_file,
    "a folder": _folder,
    "a socket": _socket,
    "a file that is too large": _large,
}


@pytest.mark.parametrize("make", UNFIT.values(), ids=UNFIT.keys())
def test_what_is_no_bounded_regular_file_is_unfit_and_gives_way(store: DirectoryStore, make) -> None:
    """It is told at once, by name; a put by its owner takes its place."""
    store.put("x/other", b"")
    make(store.path / "x" / "one")
    with pytest.raises(EncodingError, match="OBJECT_UNFIT"):
        store.get("x/one", limit=100)
    with pytest.raises(EncodingError, match="OBJECT_UNFIT"):
        store.open("x/one", limit=100)
    assert not store.put_new("x/one", b"mine")
    store.put("x/one", b"mine")
    assert store.get("x/one", limit=100) == b"mine"


def test_a_folder_that_is_a_link_is_not_followed(store: DirectoryStore, tmp_path: Path) -> None:
    """Neither reading nor writing leaves the store through a link in the middle of a name."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "one").write_bytes(b"secret")
    store.put("x/other", b"")
    (store.path / "x" / "away").symlink_to(outside)
    with pytest.raises(EncodingError, match="OBJECT_UNFIT"):
        store.get("x/away/one", limit=100)
    assert store.list_after("x/away", "", limit=10) == []
    store.put("x/away/two", b"mine")
    assert store.get("x/away/two", limit=100) == b"mine"
    assert [path.name for path in (outside).iterdir()] == ["one"]


@pytest.mark.parametrize("name", ["", "..", "a/../b", "/a", "a//b", "a/", "a\0b", "./a"])
def test_a_name_never_leaves_the_store(store: DirectoryStore, name: str) -> None:
    """What is no name is refused before the system is asked."""
    with pytest.raises(UsageError):
        store.put(name, b"")
    with pytest.raises(UsageError):
        store.get(name, limit=1)


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077])
def test_nothing_is_writable_for_everybody_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    """With umask 000 too; a private store is for its owner alone."""
    before = os.umask(mask)
    try:
        DirectoryStore(tmp_path / "shared").put("a/b", b"")
        DirectoryStore(tmp_path / "private", private=True).put("a/b", b"")
    finally:
        os.umask(before)
    for path in (tmp_path / "shared", *(tmp_path / "shared").rglob("*")):
        assert not stat.S_IMODE(path.stat().st_mode) & stat.S_IWOTH
    for path in (tmp_path / "private", *(tmp_path / "private").rglob("*")):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077


def test_a_refusal_of_the_system_is_named(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """An input or output error is told as one, and leaves no part behind."""

    def refuse(descriptor: int) -> None:
        raise OSError(5, "input/output error")

    store.put("x/other", b"")
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(UnavailableError, match="FILE_UNAVAILABLE"):
        store.put_new("x/one", b"data")
    assert [path.name for path in (store.path / "x").iterdir()] == ["other"]


def test_an_object_is_looked_at_without_being_opened(tmp_path: Path) -> None:
    """A pipe keeps nobody waiting, a link is not followed, a folder is no object."""
    store = DirectoryStore(tmp_path)
    store.put("a/b", b"xyz")
    assert store.look("a/b").size == 3
    assert store.look("a/b").written.tzinfo is not None
    os.mkfifo(tmp_path / "a" / "pipe")
    (tmp_path / "a" / "link").symlink_to("/dev/zero")
    assert store.look("a/pipe").size == 0
    assert store.look("a/link").size == len("/dev/zero")
    with pytest.raises(EncodingError, match="OBJECT_UNFIT"):
        store.look("a")
    with pytest.raises(NotFoundError, match="NO_OBJECT"):
        store.look("a/c")


def test_what_a_killed_put_left_is_listed_apart(tmp_path: Path) -> None:
    """It is no object, and who keeps the folder in order finds it."""
    store = DirectoryStore(tmp_path)
    store.put("a/b", b"xyz")
    for name in (".b.01.part", ".a.02.part", ".aside"):
        (tmp_path / "a" / name).write_bytes(b"x")
    assert store.list_after("a", "", limit=9) == ["b"]
    assert store.list_left("a", limit=9) == [".a.02.part", ".b.01.part"]
    assert store.list_left("a", limit=1) == [".a.02.part"]
    assert store.list_left("none", limit=9) == []
