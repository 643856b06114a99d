"""`maia grant`, `maia name` and `maia cert`: what is issued, what is refused, and how it is shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

from maia.authority import OnViolation, cell_rights, parse_tag
from maia.home import CertificateFolder
from maia.principals import (
    Authorisation,
    Certificate,
    KeySigner,
    Naming,
    Threshold,
    issue,
    parse_certificate,
    verify_certificate,
)
from maia.testing import People, grant

TYPE = "pito/uk.gov.pito.Numberplate"
NETWORK = "pito/UK Police Network"


def read(maia, ran):
    """Read the certificate that a command issued."""
    [path] = [maia.home / "certificates" / f"{ran.data['id'][:16]}.cert"]
    return verify_certificate(parse_certificate(path.read_bytes())).body


BROKEN = {
    "force": None,
    "drop": "a row that breaks this is dropped",
    "reject": "a batch that breaks this is refused",
}


@pytest.mark.parametrize("how", BROKEN)
def test_the_issuer_says_what_becomes_of_a_row_that_breaks_a_demand(maia, how):
    """The certificate says it, and showing it says it in words; forcing is what an equality does anyway."""
    maia.keys("pito", "met")
    right = ("--type", f"{TYPE}@*", "--action", "publish", "--attribute", "3467='Victoria'", "--on-violation", how)
    ran = maia("grant", "--from", "pito", "--to", "met", *right, "--json")
    assert ran.data["rights"][0]["broken"] == BROKEN[how]
    [cells] = cell_rights(parse_tag(read(maia, ran).tag))
    assert cells.on_violation is OnViolation(how)
    refused = {"drops": right[:-1], "network": ("--network", NETWORK, "--on-violation")}
    for options in refused.values():
        wrong = maia("grant", "--from", "pito", "--to", "met", *options, "mend")
        assert wrong.code == 2
        assert "RIGHT_OPTIONS" in wrong.err


def test_the_owner_gives_what_it_owns(maia):
    """Issuer, subject, delegation, right, period, tests, conditions and renewal are as asked."""
    maia.keys("pito", "met")
    ran = maia(
        *("grant", "--from", "pito", "--to", "met", "--type", f"{TYPE}@*", "--action", "subscribe", "--delegate"),
        *("--attribute", "3265='AE05 XYZ'", "--not-before", "2026-01-01", "--until", "2026-12-31T00:00:00Z"),
        *(
            "--test",
            "crl:pito@https://pito.example/crl",
            "--condition",
            "now.hour('UTC') < 18",
            "--renew",
            "https://pito.example",
        ),
        *("--json", "--yes", "--at", "2026-06-01"),
    )
    body = read(maia, ran)
    assert isinstance(body, Authorisation)
    assert body.delegate
    assert (body.conditions, body.renew) == (("now.hour('UTC') < 18",), "https://pito.example")
    assert body.period.not_after == datetime(2026, 12, 31, tzinfo=UTC)
    assert body.tests[0].uris == ("https://pito.example/crl",)
    assert ran.data["rights"][0]["constraints"] == {"3265": "= 'AE05 XYZ'"}
    assert (ran.data["delegate"], ran.data["blanket"]) == (True, False)


def test_a_holder_gives_less(police):
    """What pito let met pass on, met may give, also to a name or a threshold."""
    for subject in ("jones", "met: Met Brokers", "2 of (smith, jones, mb)"):
        args = ("--from", "met", "--to", subject, "--type", TYPE, "--action", "subscribe", "--attribute", "1")
        assert police("grant", *args).code == 0
    body = read(police, police("grant", *args, "--json"))
    assert isinstance(body.subject, Threshold)


REFUSED = {
    "another action": (
        ["--from", "met", "--to", "jones", "--type", TYPE, "--action", "publish"],
        "cannot give: publish on event type uk.gov.pito.Numberplate of pito: all attributes; it holds nothing of it",
    ),
    "one action too many": (
        ["--from", "met", "--to", "jones", "--type", TYPE, "--action", "publish,subscribe"],
        "of pito: all attributes; it may give: subscribe on event type",
    ),
    "another type": (
        ["--from", "met", "--to", "jones", "--type", "pito/Other", "--action", "subscribe"],
        "it holds nothing of it",
    ),
    "a wider name": (
        ["--from", "met", "--to", "jones", "--type", "pito/uk.*", "--action", "subscribe"],
        "it may give: subscribe on event type uk.gov.pito.Numberplate of pito",
    ),
    "what may not be passed on": (
        ["--from", "smith", "--to", "jones", "--type", TYPE, "--action", "subscribe", "--attribute", "9058"],
        "it may use but not pass on: subscribe on event type uk.gov.pito.Numberplate of pito: attribute 9058, where",
    ),
    "an attribute it has not": (
        ["--from", "smith", "--to", "jones", "--type", TYPE, "--action", "subscribe", "--attribute", "3467"],
        "it holds nothing of it",
    ),
    "a network it is not on": (
        ["--from", "met", "--to", "jones", "--network", NETWORK, "--action", "connect"],
        "cannot give: connect on network UK Police Network of pito",
    ),
}


@pytest.mark.parametrize("args, words", REFUSED.values(), ids=REFUSED)
def test_what_the_issuer_cannot_give_is_refused(police, args, words):
    """Exit 3, what is missing in words, and nothing written; --blanket issues it nevertheless."""
    before = sorted((police.home / "certificates").iterdir())
    ran = police("grant", *args, "--json")
    assert (ran.code, ran.data["error"]) == (3, "ISSUER_LACKS_RIGHT")
    assert words in ran.data["message"]
    assert sorted((police.home / "certificates").iterdir()) == before
    assert police("grant", *args, "--blanket").code == 0


def test_only_the_missing_attributes_are_named(police):
    """Of three attributes that jones wants, smith's issuer lacks one."""
    police.grant(
        *("--from", "met", "--to", "mb", "--type", TYPE, "--action", "subscribe", "--delegate"),
        *("--attribute", "1", "--attribute", "2"),
    )
    args = ("--from", "mb", "--to", "jones", "--type", TYPE, "--action", "subscribe")
    ran = police("grant", *args, "--attribute", "1", "--attribute", "2", "--attribute", "3", "--json")
    assert "cannot give: subscribe on event type uk.gov.pito.Numberplate of pito: attribute 3; " in ran.data["message"]
    assert police("grant", *args, "--attribute", "2").code == 0


def test_an_expired_right_gives_nothing(maia):
    """Time is a parameter: what met may give in June, it may not in August."""
    maia.keys("pito", "met", "smith")
    right = ("--type", TYPE, "--action", "subscribe")
    maia.grant(
        *("--from", "pito", "--to", "met", *right, "--delegate", "--until", "2026-07-01T00:00:00Z"),
        *("--at", "2026-01-01", "--irrevocable"),
    )
    ran = maia("grant", "--from", "met", "--to", "smith", *right, "--at", "2026-06-01")
    assert ran.code == 0
    assert "ends at 2026-07-01" in ran.err
    assert maia("grant", "--from", "met", "--to", "smith", *right, "--at", "2026-08-01").code == 3


def test_what_names_no_owner_needs_a_root_or_a_blanket(maia):
    """Tags of others and rights on everything are not guessed to be the issuer's."""
    maia.keys("admin", "met", "smith")
    for right in (("--tag", "(ftp (* prefix /home))"), ("--type", "*"), ("--network", "*")):
        args = ("grant", "--from", "met", "--to", "smith", *right)
        assert "[NO_OWNER]" in maia(*args).err
        assert maia(*args, "--root", "met").code == 0
        assert "[ISSUER_LACKS_RIGHT]" in maia(*args, "--root", "admin").err
        assert maia(*args, "--blanket").code == 0


WRONG = {
    "an unknown issuer": (["--from", "nobody", "--to", "smith"], 5, "NO_SUCH_KEY"),
    "an issuer without a private key": (["--from", "guest", "--to", "smith", "--blanket"], 5, "NO_SUCH_KEY"),
    "an unknown subject": (["--from", "pito", "--to", "nobody"], 5, "NO_SUCH_KEY"),
    "a test without a signer": (["--from", "pito", "--to", "met", "--test", "crl:"], 2, "TEST_TEXT"),
    "a test of an unknown kind": (["--from", "pito", "--to", "met", "--test", "ocsp:pito"], 2, "TEST_TEXT"),
    "a test by a name": (["--from", "pito", "--to", "met", "--test", "crl:met: x"], 2, "NOT_A_KEY"),
    "a period that ends first": (
        ["--from", "pito", "--to", "met", "--not-before", "2026-02-01", "--until", "2026-01-01"], 2, "PERIOD_EMPTY",
    ),
    "an end that is no instant": (["--from", "pito", "--to", "met", "--until", "soon"], 2, "INSTANT_TEXT"),
    "too many conditions": (["--from", "pito", "--to", "met", *["--condition", "true"] * 17], 2, "USAGE"),
}  # fmt: skip


@pytest.mark.parametrize("args, code, error", WRONG.values(), ids=WRONG)
def test_wrong_grants_are_refused(police, args, code, error):
    """Each wrong option has its own code, and nothing is issued."""
    police("key", "import", "guest", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    before = sorted((police.home / "certificates").iterdir())
    ran = police("grant", *args, "--type", TYPE, "--action", "subscribe", "--json")
    assert (ran.code, ran.data["error"]) == (code, error)
    assert sorted((police.home / "certificates").iterdir()) == before


def test_a_sealed_key_asks_for_its_passphrase(maia):
    """Without the passphrase nothing is signed; with a wrong one neither."""
    maia("key", "new", "pito", MAIA_PASSPHRASE="right")
    maia.keys("met")
    args = ("grant", "--from", "pito", "--to", "met", "--type", TYPE)
    assert maia(*args, MAIA_PASSPHRASE="right").code == 0
    wrong = maia(*args, "--until", "+1d", MAIA_PASSPHRASE="wrong")
    assert wrong.code == 1
    assert "[KEY_PASSPHRASE]" in wrong.err


def test_a_key_file_that_others_may_read_is_not_used(police):
    """A private key that may be known to others signs nothing."""
    (police.home / "keys" / "pito.key").chmod(0o644)
    ran = police("grant", "--from", "pito", "--to", "met", "--type", TYPE, "--until", "+1d")
    assert ran.code == 1
    assert "[KEY_FILE_MODE]" in ran.err
    assert "chmod 600" in ran.err


def test_certificates_can_be_written_out(police, tmp_path):
    """--out writes the signed bytes to a file; `-` writes them, and nothing else, to standard output."""
    args = ("grant", "--from", "pito", "--to", "jones", "--type", TYPE, "--action", "extend")
    assert police(*args, "--out", str(tmp_path / "x.cert")).code == 0
    data = (tmp_path / "x.cert").read_bytes()
    assert verify_certificate(parse_certificate(data))
    stdout = police(*args, "--until", "2027-01-01", "--out", "-").out
    assert stdout.startswith("(6:signed1:1(4:cert")


def test_names_make_groups(police):
    """Two certificates for one name are two members."""
    for who in ("mb", "jones"):
        ran = police("name", "add", "Met Brokers", "--from", "met", "--to", who, "--until", "+7d", "--json")
        body = read(police, ran)
        assert isinstance(body, Naming)
        assert body.name == "Met Brokers"
    linked = police("name", "add", "friends", "--from", "pito", "--to", "met: Met Brokers", "--json")
    assert linked.data["subject"]["name"][1:] == ["Met Brokers"]


def test_wrong_names_are_refused(police):
    """A name stands for keys; it is one part; --to or --x509."""
    add = ("name", "add")
    assert "[NAME_SUBJECT]" in police(*add, "x", "--from", "met", "--to", "1 of (smith, jones)").err
    assert "[NAME_OPTIONS]" in police(*add, "x", "--from", "met").err
    assert "[NAME_OPTIONS]" in police(*add, "x", "--from", "met", "--to", "smith", "--x509", "a.pem").err
    assert "[NAME_OPTIONS]" in police(*add, "x", "--from", "met", "--x509", "a.pem").err
    assert police(*add, "", "--from", "met", "--to", "smith").code == 1


def _x509(subject: str, key, issuer: str, signer, *, ca: bool) -> bytes:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=365))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=0 if ca else None), critical=True)
    )
    return builder.sign(signer, None).public_bytes(Encoding.PEM)


def test_an_x509_identity_becomes_a_name(police, tmp_path):
    """The key of a certificate that a given authority issued gets a name; without that authority it does not."""
    ca, smith, other = (Ed25519PrivateKey.generate() for _ in range(3))
    (tmp_path / "ca.pem").write_bytes(_x509("CA", ca, "CA", ca, ca=True))
    (tmp_path / "other.pem").write_bytes(_x509("CA", other, "CA", other, ca=True))
    (tmp_path / "smith.pem").write_bytes(_x509("Smith", smith, "CA", ca, ca=False))
    args = ("name", "add", "smith", "--from", "met", "--x509", str(tmp_path / "smith.pem"), "--at", "2026-06-01")
    ran = police(*args, "--anchors", str(tmp_path / "ca.pem"), "--json")
    raw = smith.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    assert ran.data["subject"]["key"] == raw.hex()
    assert police(*args, "--anchors", str(tmp_path / "other.pem")).code == 4


def test_certificates_are_shown_as_tree_sexp_and_json(police):
    """All three forms speak of the same certificate."""
    [capability] = [item for item in police("cert", "show", "--json").data["certificates"] if "AE05" in item["grants"]]
    tree = police("cert", "show", capability["id"][:8])
    assert tree.code == 0
    for words in (capability["id"][:16], "smith (", "signature verifies", "delegate no", "3265 = 'AE05 XYZ', 9058"):
        assert words in tree.out
    sexp = police("cert", "show", capability["id"], "--sexp").out
    assert sexp.startswith('(signed "1" (cert (issuer (public-key')
    assert capability["tag"] in sexp
    assert capability["genuine"] is True
    file = police.home / "certificates" / f"{capability['id'][:16]}.cert"
    assert police("cert", "show", str(file), "--json").data["certificates"][0]["id"] == capability["id"]


def test_validity_is_shown_at_the_given_instant(police):
    """Expired, not yet valid and valid are told apart; a name certificate shows what it means."""
    police("name", "add", "n", "--from", "met", "--to", "mb", "--not-before", "2026-01-01", "--until", "2026-02-01")
    for at, words in (("2025-01-01", "not valid yet"), ("2026-01-15", "(valid)"), ("2027-01-01", "expired")):
        shown = [tree for tree in police("cert", "show", "--at", at).out.split("\nca") if "means" in tree]
        assert any(words in tree for tree in shown)


def test_forged_and_unknown_certificates(police, tmp_path):
    """A forged one is shown as such; what is none is an error; an unknown id is not found."""
    path = next((police.home / "certificates").iterdir())
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    (tmp_path / "forged.cert").write_bytes(bytes(data))
    assert "SIGNATURE DOES NOT VERIFY" in police("cert", "show", str(tmp_path / "forged.cert")).out
    assert police("cert", "show", "00000000").code == 5
    assert police("cert", "show", "zz").code == 5
    (tmp_path / "none.cert").write_bytes(b"(3:abc)")
    assert police("cert", "show", str(tmp_path / "none.cert")).code == 1


def test_an_ambiguous_id_is_refused(police):
    """When the beginning of an id fits two certificates, neither is taken."""
    signer = KeySigner.generate()
    seen: dict[str, Certificate] = {}
    for number in range(5000):
        certificate = issue(Naming(issuer=signer.public_key, name=f"n{number}", subject=signer.public_key), signer)
        prefix = certificate.certificate_id.hex()[:4]
        if prefix in seen:
            break
        seen[prefix] = certificate
    for item in (certificate, seen[prefix]):
        CertificateFolder(police.home / "certificates").add(item)
    ran = police("cert", "show", prefix)
    assert ran.code == 2
    assert "[AMBIGUOUS]" in ran.err
    assert police("cert", "show", certificate.certificate_id.hex()).code == 0


def test_an_empty_home_has_nothing_to_show(maia):
    """A note, no data, exit 0."""
    ran = maia("cert", "show")
    assert (ran.code, ran.out) == (0, "")
    assert "no certificates here" in ran.err


CONDITIONS = {
    "a fact that nobody declares": ("on_duty(principal)", "CONDITION_NAME"),
    "no boolean": ("now.hour('UTC')", "CONDITION_TYPE"),
    "a rate that is none": ("rate(ten, '1m')", "CONDITION_RATE"),
}


@pytest.mark.parametrize("case", CONDITIONS.values(), ids=CONDITIONS.keys())
def test_a_condition_is_checked_before_it_is_signed(police, case):
    """What no broker could evaluate is not issued; a fact that the home declares is known."""
    source, code = case
    command = ("grant", "--from", "pito", "--to", "jones", "--type", TYPE, "--blanket", "--json", "--condition")
    ran = police(*command, source)
    assert (ran.code, ran.data["error"]) == (1, code)
    (police.home / "policy").mkdir()
    declared = '[[predicate]]\nname = "on_duty"\narity = 1\nkind = "file"\npath = "duty.csv"\n'
    (police.home / "policy" / "providers.toml").write_text(declared, "utf-8")
    assert police(*command, "on_duty(principal)").data["conditions"] == ["on_duty(principal)"]


def test_text_of_strangers_cannot_steer_the_terminal(police):
    """An escape sequence in a condition is shown, not obeyed; we ourselves would not sign one."""
    strange = "\x1b]0;owned\x07 x"
    people = People("mallory")
    CertificateFolder(police.home / "certificates").add(
        grant(people.mallory, people.mallory, "(x)", conditions=[strange])
    )
    ran = police(
        "grant", "--from", "pito", "--to", "jones", "--type", TYPE, "--condition", strange, "--blanket", "--json"
    )
    assert (ran.code, ran.data["error"]) == (1, "CONDITION_SYNTAX")
    shown = police("cert", "show", NO_COLOR="1").out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\\x1b]0;owned\\x07 x" in shown


def test_a_constraint_for_a_domain_is_issued_with_a_warning(maia):
    """Nothing can hold a domain to a constraint on values; whoever gives one is told so."""
    maia.keys("pito", "ccs")
    ran = maia(
        *("grant", "--from", "pito", "--to", "ccs", "--type", "pito/T", "--action", "publish", "--delegate"),
        *("--attribute", "3467='Victoria'", "--yes", "--json"),
    )
    assert ran.code == 0
    assert ran.data["warnings"] == ["UNENFORCEABLE_FOR_DOMAIN", "TYPE_NOT_HERE"]


def test_a_right_that_is_given_again_is_told_to_be_there(maia):
    """The same certificate, and no word of another."""
    maia.keys("pito", "met")
    asked = ("grant", "--from", "pito", "--to", "met", "--type", f"{TYPE}@*", "--action", "publish", "--json")
    first, again = maia(*asked), maia(*asked)
    assert (first.data["repeated"], again.data["repeated"]) == (False, True)
    assert first.data["id"] == again.data["id"]
    assert "issued certificate" in first.err
    assert "was issued before; nothing is added" in again.err
    assert "issued certificate" not in again.err
