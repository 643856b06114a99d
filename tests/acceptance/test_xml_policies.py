"""XML policies of image streams, through the command, the conformance adapter and the capabilities they become."""

from __future__ import annotations

import csv
import io
import json
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import maia
from maia.errors import DeniedError, VerificationError
from maia.testing import Command

EXAMPLE = """\
<policies xmlns="urn:maia:policy:1">
  <image camera="A" user="*"><blur region="lower-half"/></image>
  <image camera="*" user="X"><blur region="lower-half"/></image>
  <access user="*" camera="*" effect="allow"/>
  <access user="X" camera="Y" effect="deny"><between from="22:00" to="06:00"/></access>
  <install user="X" filter="greyscale" effect="deny"/>
  <install user="end-user" filter="*" effect="deny"/>
  <install channel="c1" only="C D"/>
</policies>
"""
ALL = '<access user="*" camera="*" effect="allow"/>'
BLUR = {"handler": "blur", "region": "lower-half"}


def policy(*rules: str) -> str:
    """Write a policy around rules."""
    return f'<policies xmlns="urn:maia:policy:1">{"".join(rules)}</policies>'


@pytest.fixture
def maia_(tmp_path: Path) -> Command:
    """Give the command, with the example in its folder."""
    command = Command(tmp_path)
    (tmp_path / "avs.xml").write_text(EXAMPLE, "utf-8")
    return command


def ask(command: Command, *args: str) -> tuple[bool, list[dict[str, object]]]:
    """Ask about the example: whether it is allowed, and through which handlers."""
    ran = command("policy", "xml", "decide", str(command.home / "avs.xml"), *args, "--json")
    assert ran.code == {"allow": 0, "deny": 3}[ran.data["decision"]], ran.err
    assert ran.data["code"] == ran.code
    return ran.code == 0, ran.data["handlers"]


@pytest.mark.requirement("19.15")
def test_rules_on_images_hold_whatever_filters_there_are(maia_: Command) -> None:
    """Camera A is blurred for all; every camera is blurred for X, once; Y's other cameras are not."""
    noon = ("--at", "12:00")
    assert ask(maia_, "--see", "ann", "A", *noon) == (True, [BLUR])
    assert ask(maia_, "--see", "X", "A", *noon) == (True, [BLUR])
    assert ask(maia_, "--see", "X", "B", *noon) == (True, [BLUR])
    assert ask(maia_, "--see", "ann", "B", *noon) == (True, [])


@pytest.mark.requirement("19.15")
@pytest.mark.parametrize(
    "at, seen", [("21:59", True), ("22:00", False), ("00:00", False), ("05:59", False), ("06:00", True)]
)
def test_access_is_denied_from_the_first_minute_until_before_the_last(maia_: Command, at: str, seen: bool) -> None:
    """Hours over midnight: X does not see Y at night; others do, and X sees other cameras."""
    assert ask(maia_, "--see", "X", "Y", "--at", at)[0] is seen
    assert ask(maia_, "--see", "ann", "Y", "--at", at)[0]
    assert ask(maia_, "--see", "X", "B", "--at", at)[0]


@pytest.mark.requirement("19.15")
@pytest.mark.requirement("24.15")
def test_who_may_install_which_filter_where(maia_: Command) -> None:
    """X has no greyscale and has mirror; c1 takes C and D and no E; no end user installs, an operator does."""
    assert not ask(maia_, "--install", "X", "greyscale", "c2")[0]
    assert ask(maia_, "--install", "X", "mirror", "c2")[0]
    assert [ask(maia_, "--install", "ann", name, "c1")[0] for name in "CDE"] == [True, True, False]
    assert not ask(maia_, "--install", "bob", "mirror", "c2", "--role", "end-user")[0]
    assert ask(maia_, "--install", "bob", "mirror", "c2", "--role", "operator")[0]


@pytest.mark.requirement("24.15")
def test_a_denial_names_its_rule(maia_: Command) -> None:
    """Who is refused is told the file and the line; who is named by no rule gets nothing."""
    told = maia_("policy", "xml", "decide", str(maia_.home / "avs.xml"), "--install", "ann", "E", "c1", "--json").data
    assert (told["reason"], [rule["line"] for rule in told["rules"]]) == ("DENIED_BY_RULE", [8])
    (maia_.home / "none.xml").write_text(policy('<access user="ann" camera="A" effect="allow"/>'), "utf-8")
    for asked in (("--see", "bob", "A"), ("--see", "ann", "B"), ("--install", "bob", "C", "c1")):
        ran = maia_("policy", "xml", "decide", str(maia_.home / "none.xml"), *asked, "--json")
        assert (ran.code, ran.data["reason"]) == (3, "NOT_NAMED")
    assert maia_("policy", "xml", "decide", str(maia_.home / "none.xml"), "--install", "ann", "C", "c1").code == 0


NOT_VALID = {
    "not XML": ("<policies", "XML_SYNTAX", 1),
    "nothing": ("", "XML_SYNTAX", 1),
    "two roots": (policy() + policy(), "XML_SYNTAX", 1),
    "an attribute twice": (policy('<access user="a" user="b" camera="*" effect="deny"/>'), "XML_SYNTAX", 1),
    "no namespace": ("<policies/>", "XML_ELEMENT", 1),
    "another namespace": ('<policies xmlns="urn:maia:policy:2"/>', "XML_ELEMENT", 1),
    "another root": ('<policy xmlns="urn:maia:policy:1"/>', "XML_ELEMENT", 1),
    "an unknown element": (policy(f"{ALL}\n<grant/>"), "XML_ELEMENT", 2),
    "an unknown handler": (policy('<image camera="A" user="*"><explode/></image>'), "XML_ELEMENT", 1),
    "a handler inside a handler": (
        policy('<image camera="A" user="*"><blur region="whole"><greyscale/></blur></image>'), "XML_ELEMENT", 1
    ),
    "a rule inside a rule": (policy(f'<access user="*" camera="*" effect="allow">{ALL}</access>'), "XML_ELEMENT", 1),
    "hours of an image": (
        policy('<image camera="A" user="*"><between from="22:00" to="06:00"/></image>'), "XML_ELEMENT", 1
    ),
    "an image without a handler": (policy('\n<image camera="A" user="*"/>'), "XML_ELEMENT", 2),
    "text": (policy("allow all"), "XML_ELEMENT", 1),
    "an unknown attribute": (policy('\n\n<access user="*" camera="*" effect="allow" x="1"/>'), "XML_ATTRIBUTE", 3),
    "an attribute of another namespace": (
        '<policies xmlns="urn:maia:policy:1" xmlns:i="urn:i" i:schemaLocation="urn:maia:policy:1 x.xsd"/>',
        "XML_ATTRIBUTE", 1,
    ),
    "an attribute of the root": ('<policies xmlns="urn:maia:policy:1" id="1"/>', "XML_ATTRIBUTE", 1),
    "no user": (policy('<access camera="*" effect="allow"/>'), "XML_ATTRIBUTE", 1),
    "no camera": (policy('<access user="*" effect="allow"/>'), "XML_ATTRIBUTE", 1),
    "no effect": (policy('<access user="*" camera="*"/>'), "XML_ATTRIBUTE", 1),
    "no end": (
        policy('<access user="*" camera="*" effect="deny"><between from="22:00"/></access>'), "XML_ATTRIBUTE", 1
    ),
    "no region": (policy('<image camera="A" user="*"><blur/></image>'), "XML_ATTRIBUTE", 1),
    "an install without anything": (policy("<install/>"), "XML_ATTRIBUTE", 1),
    "an install without a filter": (policy('<install user="X" effect="deny"/>'), "XML_ATTRIBUTE", 1),
    "only without a channel": (policy('<install only="C"/>'), "XML_ATTRIBUTE", 1),
    "only and effect": (policy('<install channel="c1" only="C" effect="deny"/>'), "XML_ATTRIBUTE", 1),
    "an unknown effect": (policy('<access user="*" camera="*" effect="permit"/>'), "XML_VALUE", 1),
    "an effect in capitals": (policy('<access user="*" camera="*" effect="ALLOW"/>'), "XML_VALUE", 1),
    "an unknown region": (policy('<image camera="A" user="*"><blur region="moon"/></image>'), "XML_VALUE", 1),
    "no time of the day": (
        policy('<access user="*" camera="*" effect="deny"><between from="22:00" to="24:00"/></access>'),
        "XML_VALUE", 1,
    ),
    "a minute too many": (
        policy('<access user="*" camera="*" effect="deny"><between from="22:60" to="06:00"/></access>'),
        "XML_VALUE", 1,
    ),
    "digits of another script": (
        policy('<access user="*" camera="*" effect="deny"><between from="٢٢:00" to="06:00"/></access>'),
        "XML_VALUE", 1,
    ),
    "a pattern": (policy('<access user="X*" camera="*" effect="deny"/>'), "XML_VALUE", 1),
    "an empty name": (policy('<access user="" camera="*" effect="deny"/>'), "XML_VALUE", 1),
    "blanks around a name": (policy('<access user=" X" camera="*" effect="deny"/>'), "XML_VALUE", 1),
    "a letter that cannot be seen": (policy('<access user="X&#x200b;" camera="*" effect="deny"/>'), "XML_VALUE", 1),
    "only of all": (policy('<install channel="c1" only="*"/>'), "XML_VALUE", 1),
    "a processing instruction": ('<?xml-stylesheet href="file:///etc/passwd"?>' + policy(), "XML_FORBIDDEN", 1),
    "a DOCTYPE": ("<!DOCTYPE policies>\n" + policy(), "XML_FORBIDDEN", 1),
    "another encoding": ('<?xml version="1.0" encoding="UTF-16"?>' + policy(), "XML_FORBIDDEN", 1),
}  # fmt: skip


@pytest.mark.requirement("19.14")
def test_a_policy_that_is_not_valid_is_refused_with_its_line(maia_: Command) -> None:
    """The check says code and line of each; nothing is decided under one, not even by the other policies."""
    for name, (text, _, _) in NOT_VALID.items():
        (maia_.home / f"{name}.xml").write_text(text, "utf-8")
    files = [str(maia_.home / f"{name}.xml") for name in NOT_VALID]
    checked = maia_("policy", "xml", "check", *files, str(maia_.home / "avs.xml"), "--json")
    found = {Path(row["file"]).stem: (row["severity"], row["finding"], row["line"]) for row in checked.data["findings"]}
    assert checked.code == 1
    assert found == {name: ("error", code, line) for name, (_, code, line) in NOT_VALID.items()}
    asked = {"request": {"see": ["ann", "B"]}, "at": "12:00"}
    assert conform(*({"policies": [EXAMPLE, text], **asked} for text, _, _ in NOT_VALID.values())) == (
        ["refused"] * len(NOT_VALID)
    )
    both = (str(maia_.home / "avs.xml"), str(maia_.home / "an unknown element.xml"))
    assert maia_.refused("policy", "xml", "decide", *both, "--see", "ann", "B") == (1, "XML_ELEMENT")


def conform(*requests: dict[str, object]) -> list[object]:
    """Ask the conformance adapter; give each result, or the code of the error."""
    lines = [json.dumps({"id": index, "verb": "xml.decide", **request}) for index, request in enumerate(requests)]
    ran = Command(Path())("conformance", stdin="\n".join(lines) + "\n")
    assert ran.code == 0
    return [answer.get("result", answer.get("error")) for answer in ran.lines]


def see(*texts: str, user: str = "ann", camera: str = "A", at: str = "12:00") -> dict[str, object]:
    """Ask whether somebody sees a camera."""
    return {"policies": list(texts), "request": {"see": [user, camera]}, "at": at}


def put(
    *texts: str, user: str = "ann", filter_: str = "C", channel: str = "c1", at: str = "12:00"
) -> dict[str, object]:
    """Ask whether somebody installs a filter."""
    return {"policies": list(texts), "request": {"install": [user, filter_, channel]}, "at": at}


def blurred(region: str, *, camera: str = "*", user: str = "*") -> str:
    """Write a rule that blurs."""
    return f'<image camera="{camera}" user="{user}"><blur region="{region}"/></image>'


def hours(effect: str, start: str, end: str) -> str:
    """Write a rule for everybody with hours."""
    return f'<access user="*" camera="*" effect="{effect}"><between from="{start}" to="{end}"/></access>'


DENY_ANN = '<access user="ann" camera="*" effect="deny"/>'
ALLOW, DENY = {"decision": "allow", "handlers": []}, {"decision": "deny", "handlers": []}
TWICE = (
    '<access user="ann" camera="*" effect="deny"><between from="22:00" to="23:00"/><between from="12:00" to="13:00"/>'
    "</access>"
)
WHOLE = {"handler": "blur", "region": "whole"}
DECIDED = {
    "no policy at all": (see(), DENY),
    "an empty policy": (see(policy()), DENY),
    "allowed by a star": (see(policy(ALL)), ALLOW),
    "another user is named": (see(policy('<access user="bob" camera="*" effect="allow"/>')), DENY),
    "another camera is named": (see(policy('<access user="ann" camera="B" effect="allow"/>')), DENY),
    "names differ in capitals": (see(policy('<access user="Ann" camera="*" effect="allow"/>')), DENY),
    "deny before allow": (see(policy(DENY_ANN, ALL)), DENY),
    "deny in a second policy": (see(policy(ALL), policy(DENY_ANN)), DENY),
    "deny in a first policy": (see(policy(DENY_ANN), policy(ALL)), DENY),
    "deny by a star": (see(policy(ALL, '<access user="*" camera="A" effect="deny"/>')), DENY),
    "deny of another camera": (see(policy(ALL, '<access user="ann" camera="B" effect="deny"/>')), ALLOW),
    "the same rule twice": (see(policy(ALL, ALL)), ALLOW),
    "allowed in these hours": (see(policy(hours("allow", "08:00", "18:00")), at="08:00"), ALLOW),
    "allowed until before their end": (see(policy(hours("allow", "08:00", "18:00")), at="18:00"), DENY),
    "hours over midnight, at midnight": (see(policy(ALL, hours("deny", "22:00", "06:00")), at="00:00"), DENY),
    "hours over midnight, at noon": (see(policy(ALL, hours("deny", "22:00", "06:00"))), ALLOW),
    "hours that end at midnight": (see(policy(ALL, hours("deny", "22:00", "00:00")), at="23:59"), DENY),
    "hours that ended at midnight": (see(policy(ALL, hours("deny", "22:00", "00:00")), at="00:00"), ALLOW),
    "hours with equal ends are a day": (see(policy(ALL, hours("deny", "10:00", "10:00")), at="09:00"), DENY),
    "a handler": (see(policy(ALL, blurred("lower-half"))), {"decision": "allow", "handlers": [BLUR]}),
    "equal handlers of two rules": (
        see(policy(ALL, blurred("lower-half"), blurred("lower-half", user="ann"))),
        {"decision": "allow", "handlers": [BLUR]},
    ),
    "equal handlers of two policies": (
        see(policy(ALL, blurred("lower-half")), policy(blurred("lower-half"))),
        {"decision": "allow", "handlers": [BLUR]},
    ),
    "handlers that only turn and draw": (
        see(policy(ALL, '<image camera="A" user="ann"><edges/><mirror/></image>')),
        {"decision": "allow", "handlers": [{"handler": "edges"}, {"handler": "mirror"}]},
    ),
    "handlers in the order of the policies": (
        see(policy(blurred("whole")), policy(ALL, blurred("lower-half"), blurred("whole"))),
        {"decision": "allow", "handlers": [WHOLE, BLUR]},
    ),
    "handlers of another camera": (see(policy(ALL, blurred("whole", camera="B"))), ALLOW),
    "handlers of another user": (see(policy(ALL, blurred("whole", user="bob"))), ALLOW),
    "handlers of what is denied": (see(policy(ALL, DENY_ANN, blurred("whole"))), DENY),
    "every handler of one rule": (
        see(policy(ALL, '<image camera="A" user="ann"><greyscale/><half-size/><frame-rate keep-one-in="3"/></image>')),
        {"decision": "allow", "handlers": [
            {"handler": "greyscale"}, {"handler": "half-size"}, {"handler": "frame-rate", "keep_one_in": 3},
        ]},
    ),
    "an install by nobody's leave": (put(policy()), DENY),
    "an install of a user who may see something": (
        put(policy('<access user="ann" camera="B" effect="allow"/>')), ALLOW
    ),
    "an install has no handlers": (put(policy(ALL, blurred("whole"))), ALLOW),
    "an install denied by name": (put(policy(ALL, '<install user="ann" filter="C" effect="deny"/>')), DENY),
    "an install denied elsewhere": (
        put(policy(ALL, '<install user="ann" filter="C" channel="c2" effect="deny"/>')), ALLOW
    ),
    "an install of any filter denied": (put(policy(ALL, '<install user="*" filter="*" effect="deny"/>')), DENY),
    "an install that a rule allows too": (
        put(policy(ALL, *(f'<install user="ann" filter="C" effect="{effect}"/>' for effect in ("deny", "allow")))),
        DENY,
    ),
    "a rule that allows an install gives none": (
        put(policy('<install user="ann" filter="C" effect="allow"/>')), DENY
    ),
    "one of the only ones": (put(policy(ALL, '<install channel="c1" only="C D"/>')), ALLOW),
    "none of the only ones": (put(policy(ALL, '<install channel="c1" only="C D"/>'), filter_="E"), DENY),
    "only on another channel": (put(policy(ALL, '<install channel="c2" only="D"/>')), ALLOW),
    "only on every channel": (put(policy(ALL, '<install channel="*" only="D"/>')), DENY),
    "only gives nothing": (put(policy('<install channel="c1" only="C"/>')), DENY),
    "only for another user": (put(policy(ALL, '<install user="bob" channel="c1" only="D"/>')), ALLOW),
    "what two policies both list": (
        put(policy(ALL, '<install channel="c1" only="C D"/>'), policy('<install channel="c1" only="C E"/>')), ALLOW
    ),
    "what one of two policies lists": (
        put(policy(ALL, '<install channel="c1" only="C D"/>'), policy('<install channel="c1" only="D E"/>')), DENY
    ),
    "a prefix, a comment and entities of XML": (
        see('<?xml version="1.0" encoding="utf-8"?><p:policies xmlns:p="urn:maia:policy:1"><!-- all of R&D -->'
            '<p:access user="R&amp;D&#x20;team" camera="*" effect="allow"/></p:policies>', user="R&D team"),
        ALLOW,
    ),
    "only of nothing": (put(policy(ALL, '<install channel="c1" only=""/>')), DENY),
    "only of blanks": (put(policy(ALL, '<install channel="c1" only=" "/>'), filter_=""), DENY),
    "only of nothing elsewhere": (put(policy(ALL, '<install channel="c1" only=""/>'), channel="c2"), ALLOW),
    "the first of two hours": (see(policy(ALL, TWICE), at="22:30"), DENY),
    "the second of two hours": (see(policy(ALL, TWICE), at="12:00"), DENY),
    "neither of two hours": (see(policy(ALL, TWICE), at="13:00"), ALLOW),
    "who is called star is reached by stars": (see(policy(ALL), user="*", camera="*"), ALLOW),
    "who is called star is nobody else": (
        see(policy('<access user="ann" camera="A" effect="allow"/>'), user="*", camera="*"), DENY
    ),
    "a camera called star is no other": (see(policy(ALL, '<access user="*" camera="A" effect="deny"/>'), camera="*"),
                                         ALLOW),
    "a filter called star is not listed": (put(policy(ALL, '<install channel="c1" only="C"/>'), filter_="*"), DENY),
    "names that no rule can have": (see(policy(ALL), user="", camera="  "), ALLOW),
    "a name that is no text of Unicode": (see(policy(ALL), user="\ud800"), ALLOW),
    "blanks make another name": (see(policy(ALL, DENY_ANN), user="ann "), ALLOW),
    "a time that is none": (see(policy(ALL), at="24:00"), "REQUEST_FIELD"),
    "a request of two kinds": (
        {"policies": [], "at": "12:00", "request": {"see": ["a", "b"], "install": ["a", "b", "c"]}}, "REQUEST_FIELD"
    ),
    "a request with a name too many": ({"policies": [], "at": "12:00", "request": {"see": ["a", "b", "c"]}},
                                       "REQUEST_FIELD"),
    "a policy that is no text": ({"policies": [5], "at": "12:00", "request": {"see": ["a", "b"]}}, "REQUEST_FIELD"),
}  # fmt: skip


@pytest.mark.requirement("19.15")
@pytest.mark.requirement("24.15")
def test_every_edge_of_the_language_is_decided_as_the_page_says() -> None:
    """Deny overrides, stars, hours at their ends, several policies, only, equal handlers."""
    found = conform(*(asked for asked, _ in DECIDED.values()))
    assert dict(zip(DECIDED, found, strict=True)) == {name: wanted for name, (_, wanted) in DECIDED.items()}


BOMBS = {
    "an external entity": '<!DOCTYPE p [<!ENTITY x SYSTEM "file:///etc/passwd">]><p>&x;</p>',
    "an external entity over http": '<!DOCTYPE p [<!ENTITY x SYSTEM "http://127.0.0.1:{port}/x">]><p>&x;</p>',
    "an external subset": '<!DOCTYPE p SYSTEM "http://127.0.0.1:{port}/p.dtd"><p/>',
    "a public subset": '<!DOCTYPE p PUBLIC "-//x" "http://127.0.0.1:{port}/p.dtd"><p/>',
    "a parameter entity": '<!DOCTYPE p [<!ENTITY % x SYSTEM "http://127.0.0.1:{port}/x">%x;]><p/>',
    "a billion laughs": "<!DOCTYPE p [<!ENTITY a0 'ha'>"
    + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 10))
    + "]><p>&a9;</p>",
    "a quadratic blow-up": f"<!DOCTYPE p [<!ENTITY a '{'x' * 60_000}'>]><p>{'&a;' * 20_000}</p>",
    "an entity in an attribute": '<!DOCTYPE p [<!ENTITY a "*">]><policies xmlns="urn:maia:policy:1"><access user="&a;" '
    'camera="*" effect="allow"/></policies>',
    "an undeclared entity": policy('<access user="&a;" camera="*" effect="allow"/>'),
    "default attributes": '<!DOCTYPE policies [<!ATTLIST access effect CDATA "allow">]>' + policy(),
    "a schema elsewhere": '<policies xmlns="urn:maia:policy:1" xmlns:i="http://www.w3.org/2001/XMLSchema-instance" '
    'i:schemaLocation="urn:maia:policy:1 http://127.0.0.1:{port}/p.xsd"/>',
    "a stylesheet": '<?xml-stylesheet href="http://127.0.0.1:{port}/x.xsl"?>' + policy(),
    "an inclusion": '<policies xmlns="urn:maia:policy:1" xmlns:x="http://www.w3.org/2001/XInclude">'
    '<x:include href="file:///etc/passwd" parse="text"/></policies>',
    "elements nested without end": '<policies xmlns="urn:maia:policy:1">' * 20_000,
    "a text without end": policy(f"<!-- {'x' * (1 << 20)} -->"),
    "rules without end": policy('<install user="X" filter="Y" effect="deny"/>' * 10_001),
    "attributes without end": policy("<access " + " ".join(f'a{n}=""' for n in range(50_000)) + "/>"),
}


@pytest.mark.requirement("19.14")
@pytest.mark.threat("T52")
def test_no_bomb_goes_off_and_nothing_is_fetched(maia_: Command) -> None:
    """At both doors that take XML: refused, without a connection to anywhere."""
    with counted_server() as (port, asked):
        texts = {name: text.replace("{port}", str(port)) for name, text in BOMBS.items()}
        for name, text in texts.items():
            (maia_.home / f"{name}.xml").write_text(text, "utf-8")
        checked = maia_("policy", "xml", "check", *(str(maia_.home / f"{name}.xml") for name in texts), "--json")
        assert {Path(row["file"]).stem for row in checked.data["findings"]} == set(texts)
        assert {row["severity"] for row in checked.data["findings"]} == {"error"}
        assert "root:" not in checked.out
        assert conform(*(see(text) for text in texts.values())) == ["refused"] * len(texts)
        assert asked == []


@contextmanager
def counted_server(
    context: ssl.SSLContext | None = None, body: bytes = b"", status: int = 200
) -> Iterator[tuple[int, list[str]]]:
    """Serve one document on this machine, and count who asks."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/avs.xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Stay quiet."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@pytest.fixture(scope="module")
def own_authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """Make a certificate for this machine, and what a server needs to show it."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost"),
                                                    x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    form = serialization.Encoding.PEM
    private = key.private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "ca.pem").write_bytes(made.public_bytes(form))
    (folder / "server.pem").write_bytes(private + made.public_bytes(form))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return folder / "ca.pem", context


@pytest.mark.requirement("19.14")
def test_a_policy_is_fetched_over_https_from_a_named_host_only(
    tmp_path: Path, own_authority: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Https from a host of `maia.toml`; not over http, not from another host, not by a redirect, not unproven."""
    met = Command(tmp_path / "met")
    met.do("domain", "init", str(met.home), "--key")
    authority, context = own_authority
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    decide = ("policy", "xml", "decide")
    with counted_server(context, EXAMPLE.encode()) as (port, asked):
        url, question = f"https://127.0.0.1:{port}/avs.xml", ("--see", "X", "Y", "--at", "23:00")
        assert met.refused(*decide, url, *question) == (3, "FETCH_REFUSED")
        settings = met.home / "maia.toml"
        settings.write_text(f'{settings.read_text("utf-8")}\n[services]\nfetch = "127.0.0.1:{port}"\n', "utf-8")
        assert met.refused(*decide, url.replace("https", "http"), *question) == (3, "FETCH_REFUSED")
        assert met.refused(*decide, f"https://localhost:{port}/avs.xml", *question) == (3, "FETCH_REFUSED")
        assert met.refused(*decide, f"file://{tmp_path}/avs.xml", *question) == (3, "FETCH_REFUSED")
        assert asked == []
        ran = met(*decide, url, *question, "--json")
        assert (ran.code, ran.data["decision"], ran.data["rules"]) == (3, "deny", [{"file": url, "line": 5}])
        monkeypatch.delenv("SSL_CERT_FILE")
        assert met.refused(*decide, url, *question) == (1, "PROVIDER_FAILED")
        assert asked == ["/avs.xml"]
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with counted_server(context, EXAMPLE.encode(), status=302) as (port, asked):
        settings.write_text(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", settings.read_text("utf-8")), "utf-8")
        url = f"https://127.0.0.1:{port}/moved.xml"
        assert met.refused(*decide, url, *question) == (1, "PROVIDER_FAILED")
        assert asked == ["/moved.xml"]


MATRIX = """\
user,door,Back Yard,lab,filter:greyscale,filter:mirror@c1
ann,allow,deny 22:00-06:00,,allow,allow
bob,blur lower-half; greyscale,allow 08:00-18:00,deny,,allow
"R&D <team>",allow 08:00-12:00; allow 13:00-17:00,,frame-rate one in 5,deny,
"""


@pytest.mark.requirement("19.14")
def test_an_imported_matrix_decides_as_the_matrix_does(tmp_path: Path) -> None:
    """Every cell, at every quarter of an hour: what the policy decides is what the cell says."""
    command = Command(tmp_path)
    (tmp_path / "matrix.csv").write_text(MATRIX, "utf-8")
    made = command.do("policy", "xml", "import", str(tmp_path / "matrix.csv"), "--out", str(tmp_path / "avs.xml"))
    assert command.do("policy", "xml", "check", str(tmp_path / "avs.xml"))["findings"] == []
    text = (tmp_path / "avs.xml").read_text("utf-8")
    assert made["rules"] == 14
    rows = list(csv.DictReader(io.StringIO(MATRIX)))
    clocks = [f"{quarter // 4:02}:{quarter % 4 * 15:02}" for quarter in range(96)]
    asked, wanted = [], []
    for row in [*rows, dict.fromkeys(rows[0], "") | {"user": "eve"}]:
        for camera in ("door", "Back Yard", "lab"):
            for at in clocks:
                asked.append(see(text, user=row["user"], camera=camera, at=at))
                wanted.append(cell_says(row[camera], at))
        for filter_, channel in (("greyscale", "c1"), ("greyscale", "c2"), ("mirror", "c1"), ("mirror", "c2")):
            column = {"greyscale": "filter:greyscale", "mirror": f"filter:mirror@{channel}"}[filter_]
            asked.append(put(text, user=row["user"], filter_=filter_, channel=channel))
            known = row["user"] != "eve"
            wanted.append((known and row.get(column, "allow") == "allow", 0))
    found = [(answer["decision"] == "allow", len(answer["handlers"])) for answer in conform(*asked)]
    assert found == wanted
    assert len(wanted) == 4 * (3 * 96 + 4)


def cell_says(cell: str, at: str) -> tuple[bool, int]:
    """Read a cell of a camera for oneself: whether it allows at a time, and through how many handlers."""
    words = [word.strip() for word in cell.split(";") if word.strip()]
    said = {
        effect: [word.partition(" ")[2] for word in words if word.startswith(effect)] for effect in ("allow", "deny")
    }
    handlers = len(words) - len(said["allow"]) - len(said["deny"])
    allowed = any(lies_in(span, at) for span in said["allow"]) if said["allow"] else bool(words)
    allowed = allowed and not any(lies_in(span, at) for span in said["deny"])
    return allowed, handlers if allowed else 0


def lies_in(span: str, at: str) -> bool:
    """Tell whether a time lies in hours; no hours are all of them."""
    start, _, end = span.partition("-")
    return not span or (start <= at < end if start < end else at >= start or at < end)


WRONG_MATRICES = {
    "nothing": ("", "MATRIX_SYNTAX"),
    "another first column": ("who,door\nann,allow\n", "MATRIX_SYNTAX"),
    "a column twice": ("user,door,door\nann,allow,allow\n", "MATRIX_SYNTAX"),
    "a user twice": ("user,door\nann,allow\nann,\n", "MATRIX_SYNTAX"),
    "a user called star": ("user,door\n*,allow\n", "MATRIX_SYNTAX"),
    "a cell too many": ("user,door\nann,allow,allow\n", "MATRIX_SYNTAX"),
    "an open quote": ('user,door\nann,"allow\n', "MATRIX_SYNTAX"),
    "an unknown word": ("user,door\nann,maybe\n", "MATRIX_CELL"),
    "hours that are none": ("user,door\nann,deny 22:00-24:00\n", "XML_VALUE"),
    "an unknown region": ("user,door\nann,blur moon\n", "XML_VALUE"),
    "hours of a filter": ("user,filter:C\nann,allow 08:00-10:00\n", "MATRIX_CELL"),
}


@pytest.mark.requirement("19.14")
def test_a_matrix_that_says_something_else_is_refused(tmp_path: Path) -> None:
    """No policy is made of a table that cannot be read to the end."""
    command, file = Command(tmp_path), tmp_path / "matrix.csv"
    for name, (text, code) in WRONG_MATRICES.items():
        file.write_text(text, "utf-8")
        assert (name, command.refused("policy", "xml", "import", str(file))) == (name, (1, code))


TYPE = "met/met.CameraY"


def test_what_a_policy_leaves_is_an_ordinary_capability(tmp_path: Path) -> None:
    """Issued at 21:59; at 22:00 the sink is closed, at 06:00 open again, and nobody touched the application."""
    met = Command(tmp_path / "met")
    met.do("domain", "init", str(met.home), "--key")
    met.keys("met", "x")
    met.do("type", "define", f"{TYPE}@1", "--encryption", "plain", "--attribute", "frame:binary:1")
    met.grant("--from", "met", "--to", "broker", "--type", TYPE, "--action", "subscribe")
    file = tmp_path / "avs.xml"
    night = '<access user="X" camera="Y" effect="deny"><between from="22:00" to="06:00"/></access>'
    file.write_text(policy(ALL, night, '<access user="bob" camera="*" effect="deny"/>', blurred("whole", camera="A")))
    asked = ("--type", TYPE, "--from", "met", "--to", "x")
    grant = ("policy", "xml", "grant", str(file))
    assert met.refused(*grant, "--user", "bob", "--camera", "Y", *asked) == (3, "XML_DENIED")
    assert met.refused(*grant, "--user", "X", "--camera", "A", *asked) == (3, "HANDLERS_DUE")
    today = (datetime.now(UTC) + timedelta(days=1)).replace(hour=21, minute=59, second=0, microsecond=0)
    given = met.do(*grant, "--user", "X", "--camera", "Y", *asked, "--at", today.isoformat())
    shown = met.do("cert", "show", given["id"])
    assert '(now.clock("UTC") >= "06:00" && now.clock("UTC") < "22:00")' in str(shown), shown
    moments = {f"{at:%H:%M}": at for at in (today + timedelta(minutes=n) for n in (0, 1, 2, 300, 480, 481, 482, 900))}
    assert {clock: sink(met.home, at) for clock, at in moments.items()} == {
        "21:59": "open", "22:00": "CONDITION_FALSE", "22:01": "CONDITION_FALSE", "02:59": "CONDITION_FALSE",
        "05:59": "CONDITION_FALSE", "06:00": "open", "06:01": "open", "12:59": "open",
    }  # fmt: skip


def sink(home: Path, at: datetime) -> str:
    """Subscribe at a moment, and say how it ended."""
    domain = maia.open(home)
    try:
        domain.deliver_plan("met.CameraY", client=domain.prove("x"), commits=(), at=at)
    except (DeniedError, VerificationError) as error:
        return error.code
    return "open"


def test_what_cannot_be_asked_is_refused(maia_: Command) -> None:
    """An unknown zone, a time that is none and two questions at once are refused."""
    asked = ("policy", "xml", "decide", str(maia_.home / "avs.xml"), "--see", "X", "Y")
    assert maia_.refused(*asked, "--zone", "Mars/Olympus") == (2, "PROVIDER_ZONE")
    assert maia_.refused(*asked, "--at", "25:00")[0] == 2
    assert maia_.refused(*asked, "--install", "X", "C", "c1")[0] == 2


def test_the_schema_is_printed_and_names_every_word() -> None:
    """Editors get the schema from the program itself."""
    told = Command(Path()).do("policy", "xml", "schema")
    assert told["namespace"] == "urn:maia:policy:1"
    for word in ("image", "blur", "access", "between", "install", "only", "lower-half"):
        assert f'"{word}"' in told["schema"]
