"""Certificates: what is read is written back, and the fuzzer never makes a signature."""

from __future__ import annotations

from harness import run, seeds

from maia.encoding import encode
from maia.errors import VerificationError
from maia.principals import parse_certificate, verify_certificate

SIGNED = set(seeds("certificate_hex", "certificates_hex"))


def target(data: bytes) -> None:
    """Read, compare the body, and verify."""
    certificate = parse_certificate(data)
    assert encode(certificate.body.to_sexp()) == certificate.body_bytes
    try:
        verify_certificate(certificate)
    except VerificationError:
        return
    assert data in SIGNED, "a certificate nobody signed"


if __name__ == "__main__":
    run(target, "certificate_hex", "certificates_hex")
