"""Every published vector, against the real functions; and the script that makes them, against the files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from maia.authority import (
    Budget,
    CertificatePool,
    KnownVersions,
    NameClosure,
    NameNode,
    Root,
    StatementBook,
    Verifier,
    ask,
    intersect,
    parse_statement,
    parse_tag,
    permits,
    verify_statement,
)
from maia.encoding import Sexp, encode, format_advanced, parse_advanced, parse_canonical
from maia.errors import MaiaError
from maia.principals import (
    Kind,
    Name,
    OnlineTest,
    PublicKey,
    TestKind,
    parse_certificate,
    parse_principal,
    principal_id,
    public_key,
    verify_certificate,
    verify_signature,
)

FOLDER = Path(__file__).resolve().parents[2] / "vectors"
FAMILIES = ("sexp", "keys", "certificates", "tags", "names", "chains", "statements", "speech")
Given = dict[str, Any]


def load() -> dict[str, Given]:
    """Read every case, by its id."""
    files = [json.loads((FOLDER / f"{family}.json").read_text("utf-8")) for family in FAMILIES]
    return {case["id"]: case for file in files for case in file["cases"]}


def expression(text: str) -> Sexp:
    """Read an expression in the advanced form."""
    return parse_advanced(text)


def instant(text: str) -> datetime:
    """Read an instant."""
    return datetime.fromisoformat(text)


def describe(key: PublicKey) -> Given:
    """Say what is expected of an accepted key."""
    return {"key_id_hex": key.key_id.hex(), "fingerprint": key.fingerprint}


def check_signature(given: Given) -> Given:
    """Verify one signature."""
    verify_signature(
        Kind[given["kind"]], bytes.fromhex(given["body_hex"]), bytes.fromhex(given["signature_hex"]),
        public_key(bytes.fromhex(given["key_hex"])),
    )  # fmt: skip
    return {"valid": True}


def check_certificate(given: Given) -> Given:
    """Read and verify one certificate."""
    certificate = verify_certificate(parse_certificate(bytes.fromhex(given["certificate_hex"])))
    return {"id_hex": certificate.certificate_id.hex(), "body": format_advanced(certificate.body.to_sexp())}


def resolve(given: Given) -> Given:
    """Resolve one name among verified certificates."""
    raws = [bytes.fromhex(text) for text in given["certificates_hex"]]
    pool = CertificatePool(verify_certificate(parse_certificate(raw)) for raw in raws)
    name = parse_principal(expression(given["name"]))
    assert isinstance(name, Name)
    keys = NameClosure(pool.namings, Budget(steps=10_000, signatures=1)).resolve(NameNode(name.base.key_id, name.parts))
    return {"key_ids_hex": sorted(key.hex() for key in keys)}


def decide(given: Given) -> Given:
    """Decide one request."""
    book = StatementBook()
    for text in given["statements_hex"]:
        book.accept(verify_statement(parse_statement(bytes.fromhex(text))))
    roots = [Root(subject=parse_principal(expression(text))) for text in given["roots"]]
    known = KnownVersions.of(given["versions"].items()) if "versions" in given else None
    request = replace(ask(expression(given["request"])), versions=known)
    decision = Verifier(roots, statements=book).decide(
        request, principal=public_key(bytes.fromhex(given["principal_hex"])),
        evidence=[bytes.fromhex(text) for text in given["certificates_hex"]], at=instant(given["at"]),
    )  # fmt: skip
    if decision.grant is None:
        return {"allowed": False, "reason": decision.reason, "stage": decision.stage and decision.stage.value}
    used = sorted(identity.hex() for identity in decision.grant.proof.certificate_ids())
    return {"allowed": True, "certificate_ids_hex": used}


def check_statement(given: Given) -> Given:
    """Read and verify one statement."""
    statement = verify_statement(parse_statement(bytes.fromhex(given["statement_hex"])))
    return {"body": format_advanced(statement.body.to_sexp())}


def keep_book(given: Given) -> Given:
    """Go through a history, step by step."""
    book = StatementBook()
    return {"outcomes": [take_step(book, step) for step in given["steps"]]}


def take_step(book: StatementBook, step: Given) -> str:
    """Accept a statement or ask about a certificate."""
    try:
        if "accept_hex" in step:
            book.accept(verify_statement(parse_statement(bytes.fromhex(step["accept_hex"]))))
            return "accepted"
        test = OnlineTest(TestKind(step["check"]), public_key(bytes.fromhex(step["signer_hex"])))
        book.check(test, bytes.fromhex(step["certificate_id_hex"]), at=instant(step["at"]))
    except MaiaError as error:
        return error.code
    return "good"


def write_tag(tag: Any) -> Given:
    """Write a tag for people."""
    return {"tag": format_advanced(tag.to_sexp())}


OPERATIONS: dict[str, Callable[[Given], Given]] = {
    "sexp.parse": lambda given: {"advanced": format_advanced(parse_canonical(bytes.fromhex(given["data_hex"])))},
    "sexp.read": lambda given: {"canonical_hex": encode(expression(given["text"])).hex()},
    "key.accept": lambda given: describe(public_key(bytes.fromhex(given["key_hex"]))),
    "key.import": lambda given: describe(PublicKey.import_(bytes.fromhex(given["key_hex"]))),
    "principal.parse": lambda given: {"id_hex": principal_id(parse_principal(expression(given["expression"]))).hex()},
    "signature.verify": check_signature,
    "certificate.verify": check_certificate,
    "tag.parse": lambda given: write_tag(parse_tag(expression(given["tag"]))),
    "tag.permits": lambda given: {
        "permits": permits(parse_tag(expression(given["tag"])), expression(given["request"]))
    },
    "tag.intersect": lambda given: write_tag(
        intersect(parse_tag(expression(given["a"])), parse_tag(expression(given["b"])))
    ),
    "name.resolve": resolve,
    "authority.decide": decide,
    "statement.verify": check_statement,
    "statement.book": keep_book,
}
CASES = load()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_vector(case: Given) -> None:
    """The expected result of the case is what the code gives."""
    try:
        found = OPERATIONS[case["operation"]](case["input"])
    except MaiaError as error:
        found = {"error": error.code}
    assert found == case["expected"], case["says"]


def test_there_are_enough_vectors_and_half_of_them_must_fail() -> None:
    """At least 120 cases, at least half of them refusals, in every family, numbered without gaps, each said once."""
    assert len(CASES) >= 120
    assert sum(case["must_fail"] for case in CASES.values()) * 2 >= len(CASES)
    for family in FAMILIES:
        numbers = [int(name.rpartition("-")[2]) for name in CASES if name.startswith(f"{family}-")]
        assert numbers == list(range(1, len(numbers) + 1))
        assert any(CASES[f"{family}-{number:04d}"]["must_fail"] for number in numbers)
    assert {case["operation"] for case in CASES.values()} == set(OPERATIONS)


def test_making_the_vectors_anew_changes_nothing() -> None:
    """The script gives the stored octets again."""
    run = subprocess.run([sys.executable, FOLDER / "make.py", "--check"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_changed_vector_is_noticed(tmp_path: Path) -> None:
    """A single edited digit makes the check fail and shows where."""
    for source in (*FOLDER.glob("*.py"), *FOLDER.glob("*.json")):
        (tmp_path / source.name).write_bytes(source.read_bytes())
    target = tmp_path / "sexp.json"
    target.write_text(target.read_text("utf-8").replace('"data_hex": "303a"', '"data_hex": "313a"', 1), "utf-8")
    run = subprocess.run([sys.executable, tmp_path / "make.py", "--check"], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert '+    "data_hex": "303a"' in run.stdout
