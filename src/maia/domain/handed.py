"""What a service hands over, kept in a home: nothing is taken in whose signature does not verify."""

from __future__ import annotations

from collections.abc import Iterable

from maia.authority import parse_statement, verify_statement
from maia.home import Home
from maia.principals import parse_certificate, verify_certificate


def keep_handed(home: Home, evidence: Iterable[bytes], statements: Iterable[bytes]) -> None:
    """Keep certificates and statements in a home; a list that the home has overtaken is left out.

    Raises:
        VerificationError: One is forged.
        MalformedError: One is not what it should be.
    """
    for raw in evidence:
        home.certificates.add(verify_certificate(parse_certificate(raw)))
    book = home.statements.load()
    for raw in statements:
        book.accept_unless_known(verify_statement(parse_statement(raw)))
    home.statements.save(book)
