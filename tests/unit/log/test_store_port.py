"""What every store does, whatever it is: one suite over a directory, memory, an emulated S3 and a real Kafka."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kafka import Kafka
from maia.errors import EncodingError, NotFoundError, UnavailableError, UsageError
from maia.log import Store, open_store
from s3 import Fault, S3Server

KINDS = ("directory", "file", "memory", "s3", pytest.param("kafka", marks=pytest.mark.slow))
LARGE = 70 << 20
"""More than one put takes."""


def _place(kind: str, request: pytest.FixtureRequest) -> str:
    if kind == "memory":
        return f"memory://{secrets.token_hex(8)}"
    if kind == "kafka":
        node: Kafka = request.getfixturevalue("kafka")
        return node.new_log()
    if kind == "s3":
        server: S3Server = request.getfixturevalue("s3")
        return f"s3://{server.new_bucket()}/some/prefix"
    path: Path = request.getfixturevalue("tmp_path") / "store"
    return str(path) if kind == "directory" else path.as_uri()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest) -> Store:
    """Give an empty store of each kind."""
    return open_store(_place(request.param, request))


@pytest.fixture
def bucket(s3: S3Server) -> Store:
    """Give an empty store in the emulated S3."""
    return open_store(f"s3://{s3.new_bucket()}/p")


def test_an_object_is_created_once_and_exchanged_by_put(store: Store) -> None:
    """`put_new` finds a taken name and changes nothing; `put` exchanges; `delete` ends it, once or twice."""
    assert store.put_new("a/b=c/1.record", b"first")
    assert not store.put_new("a/b=c/1.record", b"second")
    assert not store.put_new("a/b=c/1.record", b"first")
    assert store.get("a/b=c/1.record", limit=5) == b"first"
    store.put("a/b=c/1.record", b"third")
    assert store.get("a/b=c/1.record", limit=10) == b"third"
    store.delete("a/b=c/1.record")
    store.delete("a/b=c/1.record")
    with pytest.raises(NotFoundError, match="NO_OBJECT"):
        store.get("a/b=c/1.record", limit=10)
    assert store.put_new("a/b=c/1.record", b"fourth")


def test_of_racing_writers_one_wins_each_name(store: Store) -> None:
    """Eight writers put the same octets under ten names: whoever is told that it won is the only one."""
    wins: list[tuple[int, int]] = []
    start = threading.Barrier(8)

    def race(writer: int) -> None:
        start.wait()
        wins.extend((number, writer) for number in range(10) if store.put_new(f"lane/{number:03d}", b"the same"))

    threads = [threading.Thread(target=race, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for number, _ in wins) == list(range(10))


def test_listing_is_ordered_bounded_and_knows_folders_from_objects(store: Store) -> None:
    """Names come in order, after a name, at most so many; neither hidden ones nor what lies deeper."""
    for name in ("c", "a", "b", ".hidden", "a-b", "a.b"):
        store.put(f"x/{name}", b"")
    for name in ("folder/inner", "folder/deeper/inner", "g/1", "g-h/1", "g.i/1", "g0/1"):
        store.put(f"x/{name}", b"")
    assert store.list_after("x", "", limit=10) == ["a", "a-b", "a.b", "b", "c"]
    assert store.list_after("x", "a-b", limit=2) == ["a.b", "b"]
    assert store.list_after("x", "zzz", limit=2) == []
    assert store.list_folders("x", "", limit=10) == ["folder", "g", "g-h", "g.i", "g0"]
    assert store.list_folders("x", "g", limit=2) == ["g-h", "g.i"]
    assert store.list_folders("x", "", limit=9, shape=re.compile("g.*")) == ["g", "g-h", "g.i", "g0"]
    assert store.list_folders("", "", limit=10) == ["x"]
    assert store.list_after("", "", limit=10) == []
    assert store.list_after("nowhere", "", limit=10) == store.list_folders("nowhere", "", limit=10) == []
    assert store.list_left("x", limit=10) == []


def test_a_listing_of_more_than_a_page_is_whole(store: Store) -> None:
    """Folders of many objects beside one another, and the objects of one of them."""
    for folder, count in (("a", 1010), ("b", 1), ("c", 2), ("d", 1)):
        for number in range(count):
            store.put(f"x/{folder}/{number:05d}", b"")
    store.put("x/a0", b"")
    assert store.list_folders("x", "", limit=10) == ["a", "b", "c", "d"]
    assert store.list_folders("x", "a", limit=2) == ["b", "c"]
    assert store.list_after("x", "", limit=2) == ["a0"]
    assert store.list_after("x/a", "", limit=2000) == [f"{number:05d}" for number in range(1010)]
    assert store.list_after("x/a", "01000", limit=3) == ["01001", "01002", "01003"]


def test_parts_of_an_object_are_read_where_they_lie(store: Store) -> None:
    """Of a small object and of a large one; beyond the end there is nothing."""
    for size in (10, 3 << 20):
        data = secrets.token_bytes(size)
        store.put("x/one", data)
        with store.open("x/one", limit=size) as found:
            assert found.size == size
            assert found.get_range(0, size) == data
            assert found.get_range(2, 3) == data[2:5]
            assert found.get_range(size - 4, 100) == data[-4:]
            assert found.get_range(size, 1) == found.get_range(size + 5, 1) == found.get_range(3, 0) == b""


def test_what_is_larger_than_asked_is_unfit(store: Store) -> None:
    """It is not read, and `put` takes its place; one octet decides."""
    store.put("x/one", b"12345")
    for read in (store.get, store.open):
        with pytest.raises(EncodingError, match="OBJECT_UNFIT"):
            read("x/one", limit=4)
    assert store.get("x/one", limit=5) == b"12345"
    store.put("x/none", b"")
    assert store.get("x/none", limit=0) == b""
    with store.open("x/none", limit=0) as found:
        assert found.get_range(0, 10) == b""


def test_what_is_missing_is_missing(store: Store) -> None:
    """Whoever asks, in a store that exists or does not exist yet."""
    for _ in range(2):
        for read in (lambda: store.get("x/a", limit=1), lambda: store.open("x/a", limit=1), lambda: store.look("x/a")):
            with pytest.raises(NotFoundError, match="NO_OBJECT"):
                read()
        store.put("x/b", b"")


def test_a_look_tells_size_and_time(store: Store) -> None:
    """By the store's clock, which here is ours."""
    store.put("x/one", b"12345")
    seen = store.look("x/one")
    assert seen.size == 5
    assert abs(seen.written - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_large_object_is_made_in_a_file_and_read_back(store: Store) -> None:
    """It is there when it was finished, and its maker reads what it wrote."""
    for size in (0, 100, LARGE):
        data = secrets.token_bytes(1024) * (size // 1024) + bytes(size % 1024)
        name = f"x/made-{size}"
        with store.create(name) as made:
            made.file.write(data)
            assert made.finish() == size
            made.file.seek(0)
            assert made.file.read(100) == data[:100]
        assert store.look(name).size == size
        with store.open(name, limit=size) as found:
            assert found.get_range(max(0, size - 50), 50) == data[-50:]
    with pytest.raises(UnavailableError), store.create("x/made-100") as made:
        made.finish()
    assert store.look("x/made-100").size == 100


def test_what_was_not_finished_is_left_to_nobody(store: Store) -> None:
    """A task was killed: readers see an object that no digest names, or none."""
    with store.create("x/made") as made:
        made.file.write(b"half")
    assert store.list_after("x", "", limit=9) in ([], ["made"])


ODD = ("a b", "ä", "a%b", "a%2Fb", "a#b", "a?b", "a&b=c", "a+b", "a:b", "a~b", "a*b", "a\\b", "x" * 200, "\u202e", "😀")


@pytest.mark.parametrize("name", ODD)
def test_odd_names_come_back_as_they_were(store: Store, name: str) -> None:
    """As objects and as folders."""
    assert store.put_new(f"x/{name}", b"1")
    assert not store.put_new(f"x/{name}", b"2")
    store.put(f"y/{name}/z", b"3")
    assert store.get(f"x/{name}", limit=1) == b"1"
    assert store.list_after("x", "", limit=9) == store.list_folders("y", "", limit=9) == [name]
    store.delete(f"x/{name}")
    assert store.list_after("x", "", limit=9) == []


@pytest.mark.parametrize("name", ["", "..", "a/../b", "/a", "a//b", "a/", "a\0b", "./a"])
def test_a_name_never_leaves_the_store(store: Store, name: str) -> None:
    """What is no name is refused before the system is asked."""
    calls: tuple[Callable[[], object], ...] = (
        lambda: store.put(name, b""), lambda: store.put_new(name, b""), lambda: store.get(name, limit=1),
        lambda: store.open(name, limit=1), lambda: store.look(name), lambda: store.delete(name),
        lambda: store.create(name),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(UsageError, match="OBJECT_NAME"):
            call()


# -- what an object store can do to us

CALLS: dict[str, tuple[str, Callable[[Store], object]]] = {
    "put_new": ("PUT", lambda store: store.put_new("x/new", b"1")),
    "put": ("PUT", lambda store: store.put("x/old", b"2")),
    "get": ("GET", lambda store: store.get("x/old", limit=9)),
    "open": ("HEAD", lambda store: store.open("x/old", limit=9).close()),
    "look": ("HEAD", lambda store: store.look("x/old")),
    "get range": ("GET", lambda store: store.open("x/old", limit=9).get_range(0, 1)),
    "list after": ("LIST", lambda store: store.list_after("x", "", limit=9)),
    "list folders": ("LIST", lambda store: store.list_folders("", "", limit=9)),
    "delete": ("POST", lambda store: store.delete("x/old")),
}


@pytest.mark.fault("F06")
@pytest.mark.parametrize("status", [403, 500])
@pytest.mark.parametrize("call", CALLS)
def test_a_store_that_refuses_is_unavailable_and_never_empty(
    s3: S3Server, bucket: Store, call: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked; and it is as if nothing had been when it answers again."""
    from maia.log import object_store

    bucket.put("x/old", b"1")
    method, do = CALLS[call]
    s3.faults += [Fault(method, status, times=999), Fault("LIST", status, times=999)]
    with pytest.raises(UnavailableError, match="STORE_UNAVAILABLE"):
        do(_hasty(bucket, monkeypatch, object_store))
    s3.faults.clear()
    assert bucket.get("x/old", limit=9) == b"1"
    do(bucket)


def _hasty(store: Store, monkeypatch: pytest.MonkeyPatch, module: object) -> Store:
    """Give the same store with a client that is not patient."""
    from obstore.store import S3Store

    bucket = store.place.removeprefix("s3://").partition("/")
    client = S3Store(
        bucket[0], prefix=bucket[2], client_options={"allow_http": True, "timeout": "2s"},
        retry_config={"max_retries": 0},
    )  # fmt: skip
    return module.ObjectStore(store.place, client)  # type: ignore[attr-defined]


@pytest.mark.fault("F06")
@pytest.mark.parametrize("status", [500, 503])
def test_an_answer_that_got_lost_makes_nobody_lose(s3: S3Server, bucket: Store, status: int) -> None:
    """The object was put, the answer was an error, and the client tried again: it is told that it won, once."""
    s3.faults.append(Fault("PUT", status, after=True))
    assert bucket.put_new("x/one", b"1")
    assert [code for method, _, code in s3.seen if method == "PUT" and code in (412, status)] == [status, 412]
    assert not bucket.put_new("x/one", b"1")


@pytest.mark.fault("F06")
def test_a_conflict_that_leaves_nothing_is_tried_again(s3: S3Server, bucket: Store) -> None:
    """HTTP 409 says that others were at it, not that the name is taken; 412 says that it is."""
    s3.faults.append(Fault("PUT", 409, times=2))
    assert bucket.put_new("x/one", b"1")
    s3.faults.append(Fault("PUT", 409))
    assert not bucket.put_new("x/one", b"2")
    s3.faults.append(Fault("PUT", 409, times=2))
    bucket.put("x/one", b"3")
    assert bucket.get("x/one", limit=9) == b"3"


def test_a_conflict_that_never_ends_is_told(s3: S3Server, bucket: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for ever."""
    monkeypatch.setattr("maia.log.object_store._PAUSE", 0.001)
    s3.faults.append(Fault("PUT", 409, times=999))
    for put in (bucket.put_new, bucket.put):
        with pytest.raises(UnavailableError, match="STORE_UNAVAILABLE"):
            put("x/one", b"1")


@pytest.mark.parametrize("status", [400, 403])
def test_a_key_that_cannot_be_read_is_unfit_and_gives_way(s3: S3Server, bucket: Store, status: int) -> None:
    """Archived, or sealed with a key of somebody else's: it stops nobody, and its name is free for its owner."""
    bucket.put("x/one", b"1")
    for method, read in (("GET", bucket.get), ("HEAD", bucket.open)):
        s3.faults.append(Fault(method, status, holds="x/one", times=999))
        with pytest.raises(EncodingError, match="OBJECT_UNFIT"):
            read("x/one", limit=9)
    assert not bucket.put_new("x/one", b"2")
    bucket.put("x/one", b"2")
    s3.faults.clear()
    assert bucket.get("x/one", limit=9) == b"2"


def test_a_bucket_that_is_not_there_is_no_empty_log(s3: S3Server) -> None:
    """Whatever is asked of it."""
    store = open_store("s3://there-is-no-such/p")
    calls = (
        lambda: store.get("x", limit=1), lambda: store.open("x", limit=1), lambda: store.put("x", b""),
        lambda: store.put_new("x", b""), lambda: store.list_after("", "", limit=1), lambda: store.delete("x"),
        lambda: store.list_folders("", "", limit=1),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(UnavailableError, match="STORE_UNAVAILABLE"):
            call()


def test_parts_are_of_one_object_or_of_none(bucket: Store) -> None:
    """Somebody exchanges it while it is read: no part of the other one is given."""
    bucket.put("x/one", b"a" * (3 << 20))
    with bucket.open("x/one", limit=4 << 20) as found:
        assert found.get_range(5, 2) == b"aa"
        bucket.put("x/one", b"b" * (3 << 20))
        with pytest.raises(UnavailableError, match="STORE_UNAVAILABLE"):
            found.get_range(7, 2)
        bucket.delete("x/one")
        with pytest.raises(UnavailableError, match="STORE_UNAVAILABLE"):
            found.get_range(7, 2)


PLANTED = ("x/../a", "x//a", "x/./a", "x/", "x/\x01", "x/b=1/../c", "x/b=1//c", "x/b=\x02/c", "../a", "/a", "x/b=2")


def test_no_key_that_somebody_plants_stops_a_listing(s3: S3Server) -> None:
    """Names that no client can say, in the folder and below it, alone and together."""
    bucket = s3.new_bucket()
    store = open_store(f"s3://{bucket}/p")
    for name in ("x/b=1/1", "x/b=2/1", "x/b=3/1", "x/d"):
        store.put(name, b"")
    for key in PLANTED:
        s3.ask("PUT", f"{bucket}/p/{key}", b"1")
        assert store.list_folders("x", "b=", limit=9, shape=re.compile("b=[0-9]")) == ["b=1", "b=2", "b=3"], key
        assert "x" in store.list_folders("", "", limit=9), key
        assert "d" in store.list_after("x", "b=3", limit=9), key
    assert [name for name in store.list_folders("x", "", limit=99) if name in ("", ".", "..")] == []


def test_a_key_that_somebody_plants_on_a_later_page_doubles_nothing(s3: S3Server) -> None:
    """What was listed before it is given once, and what lies behind it is given too."""
    bucket = s3.new_bucket()
    store = open_store(f"s3://{bucket}/p")
    for number in range(1001):
        store.put(f"x/{number:05d}", b"")
    s3.ask("PUT", f"{bucket}/p/x/01000/../a", b"1")
    s3.ask("PUT", f"{bucket}/p/x/02000", b"1")
    wanted = [*(f"{number:05d}" for number in range(1001)), "02000"]
    assert store.list_after("x", "", limit=9999) == wanted
    s3.ask("PUT", f"{bucket}/p/x//a", b"1")
    assert store.list_after("x", "", limit=9999) == wanted


ADDRESSES = {
    "a user and a password": "s3://key:secret@bucket/p",
    "a user": "s3://key@bucket/p",
    "options": "s3://bucket/p?aws_secret_access_key=secret",
    "an empty question": "s3://bucket/p?",
    "a fragment": "s3://bucket/p#secret",
    "a port": "s3://bucket:9000/p",
    "no bucket": "s3:///p",
    "a way up": "s3://bucket/p/../q",
    "an unknown kind": "ftp://bucket/p",
    "a directory of another machine": "file://elsewhere/p",
    "a broken host": "s3://[bucket/p",
}


@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES.keys())
def test_an_address_says_where_and_nothing_else(address: str) -> None:
    """It is refused by name; a secret in it is not repeated."""
    with pytest.raises(UsageError, match="STORE_ADDRESS") as told:
        open_store(address)
    assert "secret" not in str(told.value)


def test_who_keeps_what_it_opened_has_one_client_of_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same place is opened once, again when the environment changes, and anew by whoever keeps nothing."""
    opened: dict[object, Store] = {}
    first = open_store("memory://kept", opened)
    assert open_store("memory://kept", opened) is first
    assert open_store("memory://kept") is not first
    assert open_store("memory://other", opened) is not first
    monkeypatch.setenv("AWS_REGION", "elsewhere")
    assert open_store("memory://kept", opened) is not first
    assert len(opened) == 3


def test_who_lacks_the_client_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setattr("maia.log.store_address.find_spec", lambda _: None)
    with pytest.raises(UnavailableError, match=r"maia\[kafka\]"):
        open_store("kafka://127.0.0.1:1/x")
