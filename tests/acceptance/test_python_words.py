"""What a person writes in Python: one word where several may stand, slips with the nearest word, values that print."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import maia
from maia.errors import FilterTypeError, MaiaError, NotFoundError, UsageError
from maia.testing import Command

TYPE = "clinic.Result"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a home with an owner, a lab, a ward and one type, once."""
    clinic = Command(tmp_path_factory.mktemp("words") / "clinic")
    clinic.do("domain", "init", str(clinic.home))
    clinic.keys("owner", "lab", "ward")
    attributes = ("patient:string", "ward:string", "visits:integer")
    clinic.do("type", "define", f"owner/{TYPE}@1", *(flag for text in attributes for flag in ("--attribute", text)))
    clinic.grant(
        "--from", "owner", "--to", "broker", "--type", f"owner/{TYPE}", "--action", "subscribe", "--irrevocable"
    )
    return clinic.home


@pytest.fixture
def home(template: Path, tmp_path: Path) -> Path:
    """Give a copy of the home."""
    shutil.copytree(template, tmp_path / "clinic")
    return tmp_path / "clinic"


def test_one_word_stands_for_itself(home: Path) -> None:
    """`actions`, `attributes` and `tests` take one text as well as several, read as the command reads them."""
    domain = maia.open(home)
    given = domain.grant("ward", TYPE, actions="subscribe", attributes="visits=5", tests="crl:owner")
    assert "subscribe on event type clinic.Result of owner: visits = 5" in str(given)
    body = given.certificate.body
    assert [(test.kind.value, test.signer) for test in body.tests] == [("crl", body.issuer)]
    with pytest.raises(UsageError, match="write crl") as refused:
        domain.grant("ward", TYPE, tests="clr:owner")
    assert refused.value.code == "TEST_TEXT"


def test_what_was_granted_can_be_revoked_as_it_is(home: Path) -> None:
    """`revoke` takes what `grant` returned; the right is gone, and both values say whose it was, without octets."""
    clinic, domain = Command(home), maia.open(home)
    given = domain.grant("ward", TYPE, attributes=["visits"], tests=["crl:owner"])
    asked = ("explain", "--as", "ward", "--type", f"owner/{TYPE}@1", "--action", "subscribe")
    clinic.do("statement", "crl", "--from", "owner")
    assert clinic(*asked).code == 0
    taken = domain.revoke(given)
    assert clinic(*asked).code == 3
    for shown in (repr(given), repr(taken), given._repr_html_(), taken._repr_html_()):
        assert "ward (" in shown
        assert "visits" in shown
        assert "b'" not in shown
        assert "\\x" not in shown
    assert repr(taken).startswith("<revocation: ward (")


def test_a_domain_its_clients_and_its_status_print(home: Path) -> None:
    """Short in a shell, a table in a notebook."""
    domain = maia.open(home)
    assert repr(domain) == f"<domain clinic at {home}>"
    assert "<td>clinic.Result</td>" in domain._repr_html_()
    assert "<td>" in domain.client("lab")._repr_html_()
    status = domain.status()
    assert repr(status) == f"<clinic, a domain in {home}: 1 type, {len(status.steps)} to do>"
    assert status.steps[0].command in str(status)
    assert "owner/clinic.Result@1" in status._repr_html_()


def test_explanations_speak_of_names_and_values(home: Path) -> None:
    """As `maia explain` does: `visits = 5`, and who gave it to whom; no expression, no certificate alone."""
    domain = maia.open(home)
    domain.grant("ward", TYPE, attributes=["visits=5", "patient"])
    [line] = domain.explain(TYPE, principal="ward", attribute="patient").lines()
    assert "in rows where visits = 5, by owner -> ward (" in line
    assert "range" not in line
    closed = domain.explain(TYPE, principal="ward", attribute="ward")
    assert "never sees `ward`" in str(closed)


SLIPS = {
    "a client": (lambda domain: domain.client("labb"), NotFoundError, "NO_SUCH_KEY", "did you mean `lab`?"),
    "a type": (lambda domain: domain.find_type("clinic.Reslt"), NotFoundError, "TYPE_NOT_FOUND", "did you mean"),
    "whom an explanation is about": (
        lambda domain: domain.explain(TYPE, principal="wadr", attribute="ward"), NotFoundError, "NO_SUCH_KEY",
        "did you mean `ward`?",
    ),
    "an attribute of an explanation": (
        lambda domain: domain.explain(TYPE, principal="ward", attribute="vists"), UsageError, "NO_SUCH_ATTRIBUTE",
        "did you mean `visits`?",
    ),
    "a filter": (
        lambda domain: domain.deliver_plan(TYPE, client=domain.prove("ward"), where="vists = 5", commits=()),
        FilterTypeError, "FILTER_UNKNOWN_ATTRIBUTE", "did you mean `visits`?",
    ),
    "a passphrase in place of a function": (
        lambda domain: domain.client("lab", passphrase="pw"), UsageError, "PASSPHRASE_TEXT", "is a function",
    ),
}  # fmt: skip


@pytest.mark.parametrize("slip, kind, code, text", SLIPS.values(), ids=SLIPS)
def test_a_slip_is_answered_with_the_nearest_word(
    home: Path, slip: object, kind: type[MaiaError], code: str, text: str
) -> None:
    """The error has its code, says what is near, and its hint is there without the command line."""
    domain = maia.open(home)
    domain.grant("ward", TYPE)
    with pytest.raises(kind) as raised:
        slip(domain)  # type: ignore[operator]
    assert raised.value.code == code
    assert text in str(raised.value)


def test_a_hint_reaches_python(home: Path) -> None:
    """A right that obeys no list cannot be revoked, and the error says what could be done about it."""
    domain = maia.open(home)
    given = domain.grant("ward", TYPE, irrevocable=True)
    with pytest.raises(UsageError) as raised:
        domain.revoke(given)
    assert raised.value.code == "IRREVOCABLE"
    assert "crl:SIGNER" in str(raised.value.hint)
    assert f"hint: {raised.value.hint}" in raised.value.__notes__


def test_words_of_before_lead_to_revoke(home: Path) -> None:
    """`withdraw`, `retract` and `end` are `revoke`, with a line that says so; the help does not list them."""
    clinic, domain = Command(home), maia.open(home)
    given = domain.grant("ward", TYPE, tests="crl:owner").certificate.certificate_id.hex()[:16]
    for word in ("withdraw", "retract", "end"):
        ran = clinic(word, given, "--dry-run")
        assert ran.code == 0, ran.err
        assert f"`maia {word}` is `maia revoke` now" in ran.err
        assert given in ran.out + ran.err
    assert "withdraw" not in clinic("--help").out


def test_the_audit_refuses_kinds_that_there_are_not(home: Path) -> None:
    """A slip would look like an audit without such rows."""
    ran = Command(home)("audit", "--kind", "refused")
    assert ran.code == 2
    assert "did you mean `refuse`?" in ran.err
    assert "there are publish, deliver" in Command(home)("audit", "--kind", "zzz").err
