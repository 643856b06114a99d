"""The console over HTTP: who is let in, what it answers, and that it decides nothing and lets nobody else act."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from console_world import PAGES, TYPE, ChargeHome, ConsoleProcess, Elements, charge_home, console_of, csrf_of, grant_bob
from processes import MAIA, environment, free_port

from maia.principals import KeySigner

STRICT = {
    "default-src": ["'none'"], "script-src": ["'self'"], "style-src": ["'self'"], "img-src": ["'self'"],
    "connect-src": ["'self'"], "form-action": ["'self'"], "base-uri": ["'none'"], "frame-ancestors": ["'none'"],
    "require-trusted-types-for": ["'script'"], "trusted-types": ["'none'"],
}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> ChargeHome:
    """Make the home once."""
    made = charge_home(tmp_path_factory.mktemp("console"))
    grant_bob(made)
    return made


@pytest.fixture(scope="module")
def console(home: ChargeHome) -> Iterator[ConsoleProcess]:
    """Run its console."""
    with console_of(home) as process:
        yield process


def test_a_key_logs_in_and_its_session_is_a_strict_cookie(console: ConsoleProcess) -> None:
    """The domain's key, an officer and an auditor are let in, each for what it may."""
    for name, wish, shown in (
        ("CCS", "change", "may change"),
        ("officer", "change", "may change"),
        ("officer", "look", "read-only"),
        ("anna", "look", "read-only"),
        ("anna", "change", "read-only"),
    ):
        client = console.client()
        answer = client.post("/login", data=console.form(console.home.people[name], wish=wish))
        cookie = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
        page = client.get("/rights")
        assert page.status_code == 200
        words = Elements(page.text).words()
        assert name in words, words
        assert shown in words, words


def test_without_a_valid_signature_nobody_is_in(console: ConsoleProcess) -> None:
    """What is signed binds the key, the host, the console and the wish; each alone is enough to be refused."""
    officer, stranger = console.home.people["officer"], KeySigner.generate()
    swapped, foreign = console.form(officer), console.form(stranger)
    key, _, rest = foreign["answer"].partition(".")
    other = console.form(officer)["answer"].split(".")
    cases = {
        "a stranger signs": foreign,
        "the officer's key, signed by a stranger": swapped
        | {"answer": ".".join((swapped["answer"].split(".")[0], rest))},
        "the signature of another challenge": swapped | {"answer": ".".join(other)},
        "for another host": console.form(officer, host="127.0.0.1:1"),
        "for another console": console.form(officer, console=stranger.public_key),
        "a wish that was not signed": console.form(officer, wish="look", said="change"),
        "a challenge of somebody else": console.form(officer, challenge=bytes(72)),
        "a client of the domain": console.form(console.home.people["bob"]),
        "the broker itself": console.form(console.home.people["CB"]),
        "no answer": swapped | {"answer": ""},
        "no challenge": swapped | {"challenge": ""},
    }
    for why, form in cases.items():
        client = console.client()
        answer = client.post("/login", data=form)
        assert answer.status_code in (400, 403), why
        assert "set-cookie" not in answer.headers, why
        assert client.get("/rights").headers["location"] == "/login", why
    assert key


def test_a_challenge_is_answered_once(console: ConsoleProcess) -> None:
    """What was overheard logs nobody in."""
    form = console.form(console.home.people["officer"])
    assert console.client().post("/login", data=form).status_code == 303
    again = console.client().post("/login", data=form)
    assert again.status_code == 403
    assert "REPLAY" in again.text
    assert "set-cookie" not in again.headers


def test_an_address_of_the_command_logs_in_once(console: ConsoleProcess) -> None:
    """Looking at it changes nothing; using it uses it up."""
    said = console.home.command.do("login", console.url, "--as", "officer")
    path = str(said["address"]).removeprefix(console.url)
    client = console.client()
    for _ in range(2):
        page = client.get(path)
        assert page.status_code == 200
        assert "set-cookie" not in page.headers
    token = Elements(page.text).of("input")[0]["value"]
    assert client.post("/login/once", data={"token": token}).status_code == 303
    assert client.get("/rights").status_code == 200
    assert console.client().post("/login/once", data={"token": token}).status_code == 403
    assert console.client().get(path).status_code == 403
    assert console.home.command.refused("login", console.url, "--as", "eve") == (3, "DENIED")


def test_the_command_signs_a_challenge_that_a_page_shows(console: ConsoleProcess) -> None:
    """For a key that lies elsewhere than the browser."""
    client = console.client()
    shown = Elements(client.get("/login").text)
    text = next(word for word in shown.words().split() if word.startswith("maia-login:"))
    answer = console.home.command.do("login", text, "--as", "anna")
    assert answer["host"] == console.host
    form = {"challenge": text.rpartition(":")[2], "wish": "look", "answer": str(answer["answer"])}
    assert client.post("/login", data=form).status_code == 303
    assert console.home.command.refused("login", "maia-login:x:look:", "--as", "anna")[1] == "LOGIN_TEXT"


def test_who_is_not_logged_in_sees_nothing(console: ConsoleProcess) -> None:
    """Every page leads to the login, with any cookie but a session's."""
    for cookie in (None, "x", ""):
        client = console.client(cookie)
        for path in (*PAGES, "/"):
            answer = client.get(path)
            assert answer.status_code == 303, path
            assert not answer.text
        assert client.get("/live/strip").status_code == 401
        refused = client.post("/revoke", data={"certificate": "00" * 32, "confirm": "yes", "csrf": "x"})
        assert refused.status_code == 401


def test_every_answer_has_the_strict_headers(console: ConsoleProcess) -> None:
    """Pages, files, refusals and redirects alike."""
    client = console.browser("officer")
    answers = [
        client.get(path) for path in (*PAGES, "/", "/login", "/healthz", "/live/strip", "/nowhere", "/login/once")
    ]
    answers += [client.get(f"/static/{name}") for name in ("console.css", "console.js", "login.js", "icon.svg", "x")]
    answers += [client.post("/revoke", data={}), client.post("/login", data={}), client.put("/rights")]
    answers += [client.get("/rights", headers={"host": "evil.example"}), client.get("/static/../service.py")]
    for answer in answers:
        rules = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
        assert {name: text.split() for name, text in rules.items()} == STRICT, answer.url
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        if answer.headers.get("content-type", "").startswith("text/html"):
            found = Elements(answer.text)
            assert all(set(script) <= {"src", "defer"} and script["src"] for script in found.of("script")), answer.url
            assert not found.of("style")
            assert not [
                name for _, attributes in found.found for name in attributes if name.startswith(("on", "style"))
            ]


def test_the_matrix_and_its_proofs_are_what_the_command_says(console: ConsoleProcess) -> None:
    """The console decides nothing: for every attribute and principal it shows what `maia who-can` lists."""
    client, command = console.browser("anna"), console.home.command
    for action in ("subscribe", "publish"):
        page = Elements(client.get("/rights", params={"type": TYPE, "action": action}).text)
        shown = {text for text in page.text if ": every row" in text or ": some rows" in text}
        told = set()
        for attribute in ("numberplate", "timestamp", "location"):
            for row in command.do("who-can", TYPE, attribute, "--action", action)["principals"]:
                state = "some rows" if row["rows"] else "every row"
                told.add(f"{row['principal'].partition(' ')[0]} and {attribute}: {state}")
        assert shown == told
    found = command.do("who-can", TYPE, "location")["principals"]
    chain = next(row["chain"] for row in found if row["principal"].startswith("bob "))
    question = {"type": TYPE, "who": "bob", "attribute": "location"}
    for page in (client.get("/rights", params=question), client.get("/why", params=question)):
        links = [link["href"] for link in Elements(page.text).of("a") if link["href"].startswith("/revoke?")]
        assert links == [f"/revoke?certificate={identity}" for identity in chain]
    denied = client.get("/why", params=question | {"attribute": "numberplate"})
    assert command("who-can", TYPE, "numberplate", "--as", "bob", "--json").data["error"] in denied.text
    assert "✕" in denied.text
    in_soho = client.get("/why", params=question | {"row": '{"location": "Soho"}'})
    assert "✕" in in_soho.text


def test_what_cannot_be_answered_is_said_on_the_page(console: ConsoleProcess) -> None:
    """With its code, and the question stays in its form."""
    client = console.browser("anna")
    for path, asked, code in (
        ("/rights", {"type": "nothing"}, "TYPE_NOT_FOUND"),
        ("/rights", {"action": "manage"}, "UNKNOWN_ACTION"),
        ("/rights", {"at": "yesterday"}, "INSTANT_TEXT"),
        ("/why", {"type": TYPE, "who": "bob", "attribute": "colour"}, "NO_SUCH_ATTRIBUTE"),
        ("/why", {"type": TYPE, "who": "bob", "attribute": "location", "row": "[1]"}, "ROW_TEXT"),
        ("/revoke", {"certificate": "ffffffff"}, "NO_SUCH_CERTIFICATE"),
        ("/revoke", {"certificate": "/etc/passwd"}, "NOTHING_NAMED"),
        ("/evidence", {"kind": "gossip"}, "AUDIT_KIND"),
        ("/changes", {"then": "never"}, "INSTANT_TEXT"),
    ):
        page = client.get(path, params=asked)
        assert page.status_code == 400, path
        assert f"<code>{code}</code>" in page.text, (path, asked)


def test_changes_graph_live_and_evidence_show_what_the_commands_say(console: ConsoleProcess, home: ChargeHome) -> None:
    """One question a page."""
    client, command = console.browser("anna"), home.command
    ending = command.grant("--from", "CCS", "--to", "eve", "--type", TYPE, "--action", "subscribe", "--until", "+2d")
    later = client.get("/changes", params={"then": "2099-01-01", "type": TYPE, "left": "eve"})
    words = Elements(later.text).words()
    assert re.search(r"ended eve [a-z0-9-]+ reads location", words), words
    assert "Both are shown the same no" in words
    graph = client.get("/graph", params={"type": TYPE})
    links = {link["href"] for link in Elements(graph.text).of("a")}
    assert f"/revoke?certificate={ending}" in links
    assert command.do("status")["problems"] == []
    assert "Nothing to do" in client.get("/live").text or "maia " in client.get("/live").text
    assert client.get("/live/strip").json()["problems"] == 0
    whole = client.get("/evidence", params={"verify": "1"})
    assert ("The audit is whole" in whole.text) is command.do("audit", "verify")["sound"]


def test_what_is_asked_comes_back_as_text(console: ConsoleProcess) -> None:
    """In forms and in refusals; a real browser sees the same in test_console_browser.py."""
    client, words = console.browser("anna"), ("type", "who", "attribute", "where", "row", "at", "then", "code", "since")
    hostile = "\"'><script>owned=1</script>`<img src=x onerror=owned=1>`"
    for path in PAGES:
        page = client.get(path, params=dict.fromkeys(words, hostile))
        assert page.status_code in (200, 400), path
        found = Elements(page.text)
        assert [script.get("src") for script in found.of("script")] == ["/static/console.js"], path
        assert [image["src"] for image in found.of("img")] == ["/static/icon.svg"], path


@pytest.mark.threat("T62")
def test_forms_of_others_are_refused_and_change_nothing(console: ConsoleProcess, home: ChargeHome) -> None:
    """A token that is missing, of another session or in a request from elsewhere; a cookie planted before the login."""
    mine, other = console.browser("officer", wish="change"), console.browser("CCS", wish="change")
    identity = grant_bob(home)
    token = csrf_of(mine.get("/revoke", params={"certificate": identity}))
    form = {"certificate": identity, "confirm": "yes", "csrf": token}
    elsewhere = {"origin": "http://evil.example"}
    cases = {
        "no token": ({**form, "csrf": ""}, {}),
        "a token of another session": ({**form, "csrf": csrf_of(other.get("/rights"))}, {}),
        "another origin": (form, elsewhere),
        "an origin that is hidden": (form, {"origin": "null"}),
        "another site": (form, {"sec-fetch-site": "cross-site"}),
        "a neighbour's site": (form, {"sec-fetch-site": "same-site"}),
    }
    for why, (sent, headers) in cases.items():
        assert mine.post("/revoke", data=sent, headers=headers).status_code == 403, why
    assert mine.post("/revoke", json=form).status_code == 400
    assert mine.post("/revoke", data={**form, "confirm": ""}).status_code == 400
    assert mine.post("/login", data=console.form(home.people["officer"]), headers=elsewhere).status_code == 403
    assert mine.post("/logout", data={"csrf": ""}).status_code == 403
    assert mine.get("/revoke", params={"certificate": identity}).status_code == 200
    assert "bob" in str(home.command.do("who-can", TYPE, "location"))
    planted = console.client("A" * 43)
    planted.post("/login", data=console.form(home.people["officer"]))
    assert console.client("A" * 43).get("/rights").status_code == 303
    before = next(cookie.value for cookie in mine.cookies.jar)
    mine.post("/login", data=console.form(home.people["officer"]))
    assert console.client(before).get("/rights").status_code == 303
    assert mine.post("/logout", data={"csrf": csrf_of(mine.get("/rights"))}).headers["location"] == "/login"
    assert mine.get("/rights").status_code == 303


def test_a_session_for_looking_changes_nothing(console: ConsoleProcess, home: ChargeHome) -> None:
    """Neither an officer's that did not ask for changes, nor an auditor's that did."""
    identity = grant_bob(home)
    for name, wish in (("officer", "look"), ("anna", "change")):
        client = console.browser(name, wish=wish)
        page = client.get("/revoke", params={"certificate": identity})
        assert "Revoke now" not in page.text
        form = {"certificate": identity, "confirm": "yes", "csrf": csrf_of(page)}
        refused = client.post("/revoke", data=form)
        assert refused.status_code == 403
        assert "READ_ONLY" in refused.text
    assert home.command.do("revoke", identity, "--dry-run")["signed"] is False


def test_a_revocation_by_the_console_is_the_one_of_the_command(tmp_path: Path) -> None:
    """The preview names whom the command would; the list, and who reads afterwards, are the same."""
    here = charge_home(tmp_path / "one")
    identity = grant_bob(here)
    there = here.elsewhere(tmp_path / "one" / "copy")
    said = there.command.do("revoke", identity, "--yes")
    with console_of(here) as console:
        client = console.browser("officer", wish="change")
        preview = client.get("/revoke", params={"certificate": identity[:12]})
        words = Elements(preview.text).words()
        assert re.search(r"bob [a-z0-9-]+ would lose", words), words
        assert str(said["right"]) in words
        assert re.search(r"ended bob [a-z0-9-]+ reads location", words), words
        assert "bob" in str(here.command.do("who-can", TYPE, "location"))
        form = {"certificate": identity, "confirm": "yes", "csrf": csrf_of(preview)}
        done = client.post("/revoke", data=form)
        assert done.status_code == 200, done.text
        again = client.post("/revoke", data=form)
        assert again.status_code == 400
        assert "REVOKED_BEFORE" in again.text
        after = Elements(client.get("/rights", params={"type": TYPE}).text)
        assert "bob and location: some rows" not in after.text
    for attribute in ("numberplate", "timestamp", "location"):
        one, other = (found.command.do("who-can", TYPE, attribute)["principals"] for found in (here, there))
        assert one == other
        assert "bob" not in str(one)
    assert here.command.refused("revoke", identity, "--yes") == there.command.refused("revoke", identity, "--yes")


def test_the_audit_tells_by_key_who_logged_in_who_was_refused_and_who_revoked(tmp_path: Path) -> None:
    """The row of a revocation stands before the list counts; one that fails is told with its code."""
    home = charge_home(tmp_path)
    identity = grant_bob(home)
    officer, eve = (home.people[name].public_key.fingerprint for name in ("officer", "eve"))
    with console_of(home) as console:
        client = console.browser("officer", wish="change")
        form = {"certificate": identity[:12], "confirm": "yes", "csrf": csrf_of(client.get("/rights"))}
        assert [client.post("/revoke", data=form).status_code for _ in range(2)] == [200, 400]
        for signer in (home.people["eve"], home.people["eve"], KeySigner.generate(), KeySigner.generate()):
            assert console.client().post("/login", data=console.form(signer)).status_code == 403
    told = home.command.do("audit")["rows"]
    rows = [tuple(row[field] for field in ("kind", "principal", "subject", "source", "reason")) for row in told]
    assert home.command.do("audit", "verify")["sound"]
    assert rows[-7:] == [
        ("login", officer, "officer", "/login", "OK"),
        ("revoke", officer, "officer", identity, "REVOKE"),
        ("revoke", officer, "officer", identity, "OK"),
        ("revoke", officer, "officer", identity, "REVOKE"),
        ("revoke", officer, "officer", identity, "REVOKED_BEFORE"),
        ("refuse", eve, "eve", "/login", "NO_OVERSIGHT"),
        ("refuse", "", "", "/login", "NO_OVERSIGHT"),
    ]


def test_an_officer_who_is_one_no_longer_is_out_at_once(tmp_path: Path) -> None:
    """Whether a key oversees the domain is asked anew each time, of the certificate that says so."""
    home = charge_home(tmp_path)
    grant_bob(home)  # with the list that the office obeys as well
    [office] = [
        row["id"] for row in home.command.do("cert", "show")["certificates"] if row.get("name") == "officers"
    ]  # fmt: skip
    with console_of(home) as console:
        client = console.browser("officer", wish="change")
        assert client.get("/rights").status_code == 200
        home.command.do("revoke", office, "--yes")
        assert client.get("/rights").status_code == 303
        assert console.client().post("/login", data=console.form(home.people["officer"])).status_code == 403
        assert console.browser("anna").get("/rights").status_code == 200


def test_the_console_command_prints_an_address_that_logs_in(home: ChargeHome) -> None:
    """On this machine only, with the key that speaks for the domain."""
    port = free_port()
    command = [*MAIA, "console", "--home", str(home.path), "--port", str(port), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as running:
        try:
            assert running.stdout is not None
            address = running.stdout.readline().decode().strip()
            with httpx2.Client() as client:
                token = Elements(client.get(address).text).of("input")[0]["value"]
                assert client.post(f"http://127.0.0.1:{port}/login/once", data={"token": token}).status_code == 303
                assert "CCS" in client.get(f"http://127.0.0.1:{port}/rights").text
        finally:
            running.terminate()
    stranger = home.command("console", "--as", "eve", "--no-browser", "--port", str(port))
    assert (stranger.code, "[NO_OVERSIGHT]" in stranger.err) == (3, True)
    open_to_all = home.command("serve", "console", "--host", "0.0.0.0", "--port", str(port))  # noqa: S104
    assert (open_to_all.code, "[TLS_REQUIRED]" in open_to_all.err) == (2, True)
