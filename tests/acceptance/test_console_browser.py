"""The console in a real browser: login by a key that stays there, by mouse and keyboard, hostile names as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest
from browser import Page, browsing
from console_world import PAGES, TYPE, ChargeHome, ConsoleProcess, Elements, charge_home, console_of, grant_bob
from payloads import PAYLOADS

from maia.events import EventType, TypeName, attribute, parse_version, sign_event_type
from maia.principals import KeySigner, import_private_key
from maia.testing import Command, naming

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=owned=1>"
WORDS = (
    "type",
    "who",
    "attribute",
    "action",
    "where",
    "row",
    "at",
    "then",
    "left",
    "right",
    "kind",
    "code",
    "since",
    "certificate",
)
KNOWN = frozenset(
    [
        "a",
        "body",
        "br",
        "button",
        "caption",
        "code",
        "datalist",
        "dd",
        "defs",
        "desc",
        "details",
        "div",
        "dl",
        "dt",
        "footer",
        "form",
        "g",
        "h1",
        "h2",
        "h3",
        "head",
        "header",
        "html",
        "img",
        "input",
        "label",
        "legend",
        "li",
        "link",
        "main",
        "marker",
        "meta",
        "nav",
        "ol",
        "option",
        "p",
        "path",
        "rect",
        "section",
        "select",
        "span",
        "strong",
        "summary",
        "svg",
        "table",
        "tbody",
        "td",
        "text",
        "textarea",
        "th",
        "thead",
        "title",
        "tr",
        "ul",
        "script",
    ]
)


@pytest.fixture(scope="module")
def page(require_tool: Callable[[str], str]) -> Iterator[Page]:
    """Start one browser for all."""
    with browsing(require_tool("chromium")) as started:
        started.size(1280, 900)
        yield started


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> ChargeHome:
    """Make the home once."""
    return charge_home(tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def console(home: ChargeHome) -> Iterator[ConsoleProcess]:
    """Run its console."""
    with console_of(home) as process:
        yield process


def log_in(page: Page, console: ConsoleProcess, signer: KeySigner, *, changes: bool = False) -> None:
    """Log in with a seed, which the page signs with and forgets."""
    page.call("Network.clearBrowserCookies")
    page.go(f"{console.url}/login")
    seed = json.dumps(signer.export_seed().hex())
    page.js(
        f"window.left = true; const f = document.querySelector('#key-login'); f.elements.seed.value = {seed};"
        f"f.elements.changes.checked = {json.dumps(changes)}; f.requestSubmit()"
    )
    page.wait("location.pathname === '/rights' && document.readyState === 'complete'")


def test_a_browser_signs_looks_at_a_proof_and_revokes_after_the_preview(page: Page, console: ConsoleProcess) -> None:
    """The whole way of an officer; what it ends is what the command then finds ended."""
    home = console.home
    identity = grant_bob(home)
    log_in(page, console, home.people["officer"], changes=True)
    assert page.js("document.querySelector('.who .badge').textContent") == "may change"
    assert page.js("document.cookie") == ""
    page.click("td.some a[href*='who=bob'][href*='attribute=location']")
    assert "bob" in page.js("document.querySelector('.side .verdict.yes').textContent")
    page.click(f".chain a[href='/revoke?certificate={identity}']")
    assert "would lose" in page.js("document.querySelector('#loss-title').textContent")
    assert "ended" in page.js("document.querySelector('.side').textContent")
    page.js("document.querySelector('button.danger').click()")  # not confirmed: the browser keeps it
    assert (
        page.js("location.pathname + document.querySelector('[name=confirm]').validity.valueMissing") == "/revoketrue"
    )
    page.js("document.querySelector('[name=confirm]').checked = true")
    page.click("button.danger")
    assert "has lost it" in page.js("document.querySelector('#done-title').textContent")
    assert "bob" not in str(home.command.do("who-can", TYPE, "location"))
    assert page.said == []


def test_the_keyboard_alone_is_enough(page: Page, console: ConsoleProcess) -> None:
    """From the skip link through the login to a proof; and the page does not grow wider than a phone."""
    home = console.home
    page.call("Network.clearBrowserCookies")
    page.go(f"{console.url}/login")
    page.press("Tab")
    assert page.js("document.activeElement.className") == "skip"
    page.tab_to("e.name === 'seed'")
    page.write(home.people["anna"].export_seed().hex())
    page.press("Enter")
    page.wait("location.pathname === '/rights' && document.readyState === 'complete'")
    page.tab_to("e.matches('td a') && e.textContent.includes('BO and location: closed')")
    assert page.js("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.js("window.left = true")
    page.press("Enter")
    page.loaded()
    assert page.js("document.activeElement.matches('.side')")
    assert "NOT_PERMITTED" in page.js("document.querySelector('.verdict.no').textContent")
    page.size(320, 800)
    for path in ("/rights", "/why", "/graph", "/revoke", "/changes", "/live", "/evidence?verify=1"):
        page.go(console.url + path)
        assert page.js("document.documentElement.scrollWidth <= 320"), path
        unlabelled = "[...document.querySelectorAll('main input:not([type=hidden]), main select, main textarea')]"
        assert page.js(f"{unlabelled}.filter(e => !e.labels.length).length") == 0, path
    page.size(1280, 900)
    assert page.said == []


@pytest.mark.threat("T62")
def test_a_form_and_a_frame_of_another_site_do_nothing(page: Page, console: ConsoleProcess) -> None:
    """The browser sends no cookie from elsewhere, and shows the console in nobody's frame."""
    home = console.home
    identity = grant_bob(home)
    log_in(page, console, home.people["officer"], changes=True)
    token = page.js("document.querySelector('[name=csrf]').value")  # even if it leaked
    fields = {"certificate": identity, "confirm": "yes", "csrf": token}
    inputs = "".join(f'<input name="{name}" value="{value}">' for name, value in fields.items())
    hostile = (
        f'<iframe src="{console.url}/rights"></iframe><form method="post" action="{console.url}/revoke">{inputs}</form>'
    )
    with other_site(hostile) as port:
        page.go(f"http://evil.example:{port}/")
        while not any("frame-ancestors 'none'" in line for line in page.said):  # the browser says that it did not
            page.js("1")
        page.js("window.left = true; document.forms[0].submit()")
        page.loaded()
        assert page.js("location.origin") == console.url
        assert "OTHER_SITE" in page.js("document.body.textContent")
    assert "bob" in str(home.command.do("who-can", TYPE, "location"))
    page.go(f"{console.url}/rights")
    assert page.js("location.pathname") == "/rights"  # whoever is logged in still is
    page.said.clear()


@pytest.mark.threat("T63")
def test_hostile_names_and_values_are_shown_as_text(page: Page, tmp_path: Path) -> None:
    """As names of the domain, of types, attributes and groups, as values and as questions: no script runs."""
    page.said.clear()
    home = hostile_home(tmp_path)
    together = " ".join(PAYLOADS)
    with console_of(home) as console:
        client = console.browser("domain")
        page.call("Network.clearBrowserCookies")
        log_in(page, console, home.people["domain"])
        name = f"owner/{HOSTILE}@1"
        paths = [f"/rights?type={quote(name)}", f"/graph?type={quote(name)}", "/graph", "/live", "/evidence"]
        paths += [f"/rights?type={quote(name)}&who=bob&attribute={quote(PAYLOADS[0])}"]
        paths += [f"{path}?{'&'.join(f'{word}={quote(together)}' for word in WORDS)}" for path in PAGES]
        for path in paths:
            answer = client.get(path)
            assert answer.status_code in (200, 400), path
            check_harmless(answer.text)
            page.go(console.url + path)
            assert page.js(
                "window.owned === undefined && !document.querySelector('img:not([src=\"/static/icon.svg\"])')"
            )
        shown = "".join(Elements(client.get(f"/rights?type={quote(name)}").text).text)
        assert [payload for payload in PAYLOADS if payload not in shown] == []
        shown = "".join(Elements(client.get("/graph").text).text)
        assert [payload for payload in PAYLOADS if f"owner: {payload}" not in shown] == []
        check_harmless(console.client().get("/login/once", params={"token": together}).text)
        for number, payload in enumerate(PAYLOADS):
            asked = dict.fromkeys(WORDS, payload)
            check_harmless(client.get(PAGES[number % len(PAGES)], params=asked).text)
        assert [line for line in page.said if "Content Security" in line or "dialog" in line] == []


def check_harmless(text: str) -> None:
    """See that a page has only the elements of its templates, and no address that is a script."""
    found = Elements(text)
    assert {name for name, _ in found.found} <= KNOWN, {name for name, _ in found.found} - KNOWN
    assert [script.get("src") for script in found.of("script")] in (["/static/console.js"], ["/static/login.js"], [])
    for name, attributes in found.found:
        assert not [word for word in attributes if word.startswith("on") or word == "style"], (name, attributes)
        for word in ("href", "src", "action", "formaction"):
            assert attributes.get(word, "/").startswith(("/", "#")), (name, attributes)


def hostile_home(root: Path) -> ChargeHome:
    """Make a home in which everything has a hostile name that may have one."""
    command = Command(root / "home")
    command.do("domain", "init", str(command.home), "--name", HOSTILE)
    command.keys("owner", "bob", "domain")
    files = {name: command.home / "keys" / f"{name}.key" for name in ("owner", "bob", "domain", "broker")}
    people = {name: import_private_key(path.read_bytes()) for name, path in files.items()}
    definition = EventType(
        name=TypeName(people["owner"].public_key, HOSTILE, parse_version("1")),
        attributes=tuple(attribute(payload, str(number), "string") for number, payload in enumerate(PAYLOADS, 1)),
    )
    (root / "type").write_bytes(sign_event_type(definition, people["owner"]).raw)
    command.do("type", "add", str(root / "type"))
    value = " ".join(PAYLOADS).replace("'", "")
    command.grant("--from", "owner", "--to", "bob", "--type", f"owner/{HOSTILE}", "--action", "subscribe",
                  "--attribute", f"uid:1='{value}'")  # fmt: skip
    for payload in PAYLOADS:
        certificate = naming(people["owner"], payload, people["bob"])
        (command.home / "certificates" / f"{certificate.certificate_id.hex()[:16]}.cert").write_bytes(certificate.raw)
    return ChargeHome(command, people | {"CB": people["broker"]})


@contextmanager
def other_site(body: str) -> Iterator[int]:
    """Serve one page from another site, and give its port."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
