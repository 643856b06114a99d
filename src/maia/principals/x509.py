"""The border to X.509: an identity there becomes a name here, once, and nothing else of it comes in.

Rules kept here:

- the certificate was issued directly by one of the given trust anchors, which is an authority and may sign
  certificates; longer paths are refused rather than half understood;
- both are valid at ``at``, and the name certificate is valid no longer than both;
- a signature over MD5 or SHA-1 counts as none;
- an extension that is critical and not understood here refuses the certificate, as RFC 5280 demands;
- the key is Ed25519 and passes the full test of its point;
- the result is a name certificate of the issuer's own namespace. It grants nothing: rights come from certificates of
  this house, and no function that decides takes an X.509 object.

X.509 revocation is not asked: who needs it gives the name certificate an on-line test, or a short period.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from maia.errors import EncodingError, ExpiredError, KeyFormatError, SignatureError
from maia.principals.certificate import Certificate, Naming, issue
from maia.principals.keys import PublicKey
from maia.principals.principal import is_reserved_name
from maia.principals.signing import Signer
from maia.principals.times import check_aware
from maia.principals.validity import Period

if TYPE_CHECKING:  # the library is slow to import, and only this border needs it
    from cryptography import x509

MAX_X509 = 65_536
MAX_ANCHORS = 256
_BEGIN = b"-----BEGIN CERTIFICATE-----"
# Understood and honoured (basic constraints, key usage), or without bearing on a name (the purposes, other names).
_UNDERSTOOD = frozenset(("2.5.29.19", "2.5.29.15", "2.5.29.37", "2.5.29.17"))


def name_certificate_from_x509(
    pem_or_der: bytes, *, authority: bytes, issuer: Signer, name: str | None = None, at: datetime
) -> Certificate:
    """Turn an X.509 identity into a name certificate: in the issuer's namespace, ``name`` means the subject's key.

    Args:
        pem_or_der: One X.509 certificate.
        authority: The trust anchors, one or more certificates in PEM.
        issuer: Signs the name certificate; the name is one of its own namespace.
        name: The name to give; the common name in lower case by default.
        at: The instant of the import, at which certificate and anchor must be valid.

    Returns:
        The name certificate, valid no longer than the X.509 certificate and its anchor.

    Raises:
        EncodingError: The bytes are no X.509 certificate, or hold something that Maia cannot honour.
        SignatureError: No given anchor issued it.
        ExpiredError: It, or its anchor, is not valid at ``at``.
        KeyFormatError: Its key is not an Ed25519 key that Maia accepts.
    """
    check_aware(at)
    subject = _load_one(pem_or_der)
    period = _valid_period(subject, _issuing_anchor(subject, _load_anchors(authority)), at)
    _check_extensions(subject, "the certificate")
    key = _subject_key(subject)
    chosen = _default_name(_common_name(subject)) if name is None else name
    return issue(Naming(issuer=issuer.public_key, name=chosen, subject=key, period=period), issuer)


def _default_name(common: str) -> str:
    """Take a common name over, in small letters, unless it could be read as something else."""
    # SECURITY: what others call themselves must not become a name that Maia gives a meaning, in any case or script.
    if not common.isascii() or is_reserved_name(common):
        raise EncodingError("the common name cannot be a name here; give one", code="X509_NAME")
    return common.lower()


def _load_one(data: bytes) -> x509.Certificate:
    from cryptography import x509  # noqa: PLC0415 - slow to import, and only this border needs it

    if len(data) > MAX_X509:
        raise EncodingError(f"an X.509 certificate has at most {MAX_X509} octets", code="X509_SHAPE")
    pem = data.lstrip().startswith(_BEGIN)
    if pem and data.count(_BEGIN) != 1:
        raise EncodingError("import one X.509 certificate at a time", code="X509_SHAPE")
    try:
        return x509.load_pem_x509_certificate(data) if pem else x509.load_der_x509_certificate(data)
    except (ValueError, x509.InvalidVersion) as error:
        raise EncodingError("not an X.509 certificate", code="X509_SHAPE") from error


def _load_anchors(data: bytes) -> list[x509.Certificate]:
    from cryptography import x509  # noqa: PLC0415 - as above

    if not 1 <= data.count(_BEGIN) <= MAX_ANCHORS or len(data) > MAX_X509 * MAX_ANCHORS:
        raise EncodingError(f"trust anchors are 1 to {MAX_ANCHORS} certificates in PEM", code="X509_ANCHORS")
    try:
        return x509.load_pem_x509_certificates(data)
    except (ValueError, x509.InvalidVersion) as error:
        raise EncodingError("a trust anchor is no X.509 certificate", code="X509_ANCHORS") from error


def _issuing_anchor(subject: x509.Certificate, anchors: list[x509.Certificate]) -> x509.Certificate:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm  # noqa: PLC0415 - as above

    for anchor in anchors:
        try:
            subject.verify_directly_issued_by(anchor)  # which refuses MD5 and SHA-1 by itself
        except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError):
            continue
        _check_authority(anchor)
        return anchor
    raise SignatureError("no given trust anchor issued the X.509 certificate", code="X509_NOT_ISSUED")


def _check_authority(anchor: x509.Certificate) -> None:
    """Refuse an anchor that is no authority, or whose limits Maia cannot honour."""
    from cryptography import x509  # noqa: PLC0415 - as above

    extensions = _check_extensions(anchor, "the trust anchor")
    try:
        constraints = extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        constraints = None
    if constraints is None or not constraints.ca:
        raise SignatureError("the trust anchor is no certificate authority", code="X509_NOT_ISSUED")
    try:
        usage = extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        return
    if not usage.key_cert_sign:
        raise SignatureError("the trust anchor may not sign certificates", code="X509_NOT_ISSUED")


def _check_extensions(certificate: x509.Certificate, which: str) -> x509.Extensions:
    from cryptography import x509  # noqa: PLC0415 - as above

    try:
        extensions = certificate.extensions
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise EncodingError(f"{which} has extensions that cannot be read", code="X509_EXTENSION") from error
    for extension in extensions:
        # SECURITY: a critical extension may narrow what the certificate says; ignoring it would widen.
        if extension.critical and extension.oid.dotted_string not in _UNDERSTOOD:
            raise EncodingError(
                f"{which} has the critical extension `{extension.oid.dotted_string}`, which Maia cannot honour",
                code="X509_EXTENSION",
            )
    return extensions


def _valid_period(subject: x509.Certificate, anchor: x509.Certificate, at: datetime) -> Period:
    periods = [Period(item.not_valid_before_utc, item.not_valid_after_utc) for item in (subject, anchor)]
    for period, which in zip(periods, ("the X.509 certificate", "its trust anchor"), strict=True):
        if not period.contains(at):
            raise ExpiredError(f"{which} is not valid at {at.isoformat()}", code="X509_EXPIRED")
    common = periods[0].intersect(periods[1])
    assert common is not None  # noqa: S101 - both contain `at`
    return common


def _subject_key(certificate: x509.Certificate) -> PublicKey:
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - as above

    try:
        key = certificate.public_key()
    except (UnsupportedAlgorithm, ValueError):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise KeyFormatError(
            "the X.509 certificate has no ed25519 key; let its holder make one with `maia key new`, "
            "and name that key with `maia name add`",
            code="X509_KEY_KIND",
        )
    return PublicKey.import_(key.public_bytes_raw())


def _common_name(certificate: x509.Certificate) -> str:
    from cryptography.x509.oid import NameOID  # noqa: PLC0415 - as above

    try:
        names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError as error:
        raise EncodingError("the X.509 certificate has a subject that cannot be read", code="X509_NAME") from error
    if len(names) != 1 or not isinstance(names[0].value, str):
        raise EncodingError("the X.509 certificate has no single common name; give one", code="X509_NAME")
    return names[0].value
