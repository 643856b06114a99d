"""Agreements as text that people read and files keep; reading one believes nothing."""

from __future__ import annotations

from maia.authority import parse_tag
from maia.encoding import Sexp, SexpLimits, format_advanced, parse_advanced
from maia.errors import EncodingError, UsageError
from maia.policy.agreements import AGREEMENT_VERSION, MAX_SIGNATURES, Agreement, AgreementRow, SignedAgreement
from maia.principals import (
    PublicKey,
    decode_text,
    parse_principal,
)

AGREEMENT_LIMITS = SexpLimits(max_bytes=4 << 20, max_depth=64, max_atom=1 << 16)


def format_agreement(signed: SignedAgreement) -> str:
    """Write an agreement as a text that people read and files keep.

    >>> from maia.authority import type_right
    >>> from maia.principals import KeySigner
    >>> clinic, pharmacy = KeySigner(bytes(32)).public_key, KeySigner(bytes(31) + b"1").public_key
    >>> row = AgreementRow(role="pharmacist", words="subscribe T", tag=type_right(clinic, "T"))
    >>> plan = SignedAgreement(agreement=Agreement(title="x", giver=clinic, receiver=pharmacy, rows=(row,)))
    >>> parse_agreement(format_agreement(plan)) == plan
    True
    """
    expression: Sexp = (b"signed-agreement", signed.agreement.to_sexp(), (b"signatures", *signed.signatures))
    return f"{format_advanced(expression)}\n"


def parse_agreement(text: str) -> SignedAgreement:
    """Read an agreement, believing nothing.

    >>> parse_agreement("(agreement)")
    Traceback (most recent call last):
    maia.errors.EncodingError: [AGREEMENT_SHAPE] not an agreement

    Raises:
        EncodingError: The text is no agreement of this version.
        KeyFormatError: A key inside is refused.
    """
    match parse_advanced(text, limits=AGREEMENT_LIMITS):
        case (b"signed-agreement", body, (b"signatures", *signatures)):
            pass
        case _:
            raise EncodingError("not an agreement", code="AGREEMENT_SHAPE")
    raws = [item for item in signatures if isinstance(item, bytes)]
    if len(raws) != len(signatures) or len(raws) > MAX_SIGNATURES:
        raise EncodingError("not an agreement", code="AGREEMENT_SHAPE")
    return SignedAgreement(agreement=agreement_from_sexp(body), signatures=tuple(raws))


def agreement_from_sexp(expression: Sexp) -> Agreement:
    """Read the body of an agreement, believing nothing.

    Raises:
        EncodingError: It is none of this version.
        KeyFormatError: A key inside is refused.
    """
    match expression:
        case (b"agreement", version, (b"title", title), (b"giver", giver), (b"receiver", receiver), *rows):
            if version != AGREEMENT_VERSION:
                raise EncodingError("an agreement of an unknown version", code="AGREEMENT_SHAPE")
        case _:
            raise EncodingError("not an agreement", code="AGREEMENT_SHAPE")
    parties = [parse_principal(item) for item in (giver, receiver)]
    keys = [item for item in parties if isinstance(item, PublicKey)]
    if len(keys) != len(parties):
        raise EncodingError("not an agreement", code="AGREEMENT_SHAPE")
    try:
        return Agreement(
            title=decode_text(title, "a title"), giver=keys[0], receiver=keys[1], rows=tuple(map(parse_row, rows))
        )
    except UsageError as error:
        raise EncodingError(error.message, code=error.code) from error


def parse_row(expression: Sexp) -> AgreementRow:
    """Read a row.

    Raises:
        EncodingError: It is none.
    """
    match expression:
        case (b"row", role, words, tag):
            return AgreementRow(
                role=decode_text(role, "a role"), words=decode_text(words, "a right"), tag=parse_tag(tag)
            )
        case _:
            raise EncodingError("not a row of an agreement", code="AGREEMENT_SHAPE")
