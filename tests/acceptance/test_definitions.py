"""Definitions of event types: their bytes, their signature, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maia.encoding import encode
from maia.errors import MalformedError, SignatureError, UsageError
from maia.events import (
    FIRST,
    EventType,
    TypeName,
    Version,
    attribute,
    parse_event_type,
    sign_event_type,
    verify_type_signature,
)
from maia.principals import (
    KeyHash,
    KeySigner,
    Kind,
    Name,
    Threshold,
)

PITO, MET, EVIL = (KeySigner(bytes([n]) * 32) for n in (1, 2, 9))


NUMBERPLATE = EventType(
    name=TypeName(PITO.public_key, "uk.gov.pito.Numberplate", Version("8516")),
    attributes=(
        attribute("numberplate", 3265, "string"),
        attribute("timestamp", 9058, "timestamp"),
        attribute("location", 3467, "string"),
    ),
)


@pytest.mark.requirement("2.02")
def test_genuine_definition_verifies_and_altered_ones_do_not() -> None:
    """The signature covers everything: another type for `location`, or P_Evil's signature, fails."""
    signed = sign_event_type(NUMBERPLATE, PITO)
    assert verify_type_signature(parse_event_type(signed.raw)).definition == NUMBERPLATE
    changed = signed.raw.replace(b"8:location4:34676:string", b"8:location4:34677:integer")
    assert changed != signed.raw
    with pytest.raises(SignatureError):
        verify_type_signature(parse_event_type(changed))
    forged = replace(signed, signature=EVIL.sign(Kind.EVENT_TYPE, encode(NUMBERPLATE.to_sexp())))
    with pytest.raises(SignatureError):
        verify_type_signature(forged)


@pytest.mark.requirement("2.01")
def test_equal_names_of_two_owners_are_two_types() -> None:
    """PITO and CCS both define `Location`; neither the names nor the identities meet."""
    pito, ccs = (TypeName(key.public_key, "Location", FIRST) for key in (PITO, MET))
    assert pito != ccs
    assert pito.type_id != ccs.type_id
    assert pito == TypeName(KeyHash(PITO.public_key.key_id), "Location", FIRST)
    assert len({pito, ccs, TypeName(KeyHash(PITO.public_key.key_id), "Location", FIRST)}) == 2


@pytest.mark.requirement("2.04")
def test_bare_name_without_a_key_is_refused() -> None:
    """The readable part is shown; asking with it alone is an error."""
    assert NUMBERPLATE.name.name == "uk.gov.pito.Numberplate"
    assert "uk.gov.pito.Numberplate" in str(NUMBERPLATE.name)
    with pytest.raises(MalformedError, match="TYPE_OWNER"):
        TypeName("uk.gov.pito", "Numberplate", FIRST)  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="TYPE_OWNER"):
        TypeName(Name(PITO.public_key, ("types",)), "Numberplate", FIRST)  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="TYPE_OWNER"):
        TypeName(Threshold(1, (Name(PITO.public_key, ("types",)),)), "Numberplate", FIRST)
    with pytest.raises(UsageError):
        TypeName(PITO.public_key, "Numberplate", "0")  # type: ignore[arg-type]
