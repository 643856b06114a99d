"""Principals for machines."""

from __future__ import annotations

from maia.principals import KeyHash, Name, PublicKey, Subject, Threshold


def subject_to_json(subject: Subject) -> object:
    """Write a subject for machines: keys as hexadecimal, the rest as objects."""
    if isinstance(subject, PublicKey):
        return {"key": subject.raw.hex(), "fingerprint": subject.fingerprint}
    if isinstance(subject, KeyHash):
        return {"hash": subject.key_id.hex(), "fingerprint": subject.fingerprint}
    if isinstance(subject, Name):
        return {"name": [subject_to_json(subject.base), *subject.parts]}
    if isinstance(subject, Threshold):
        return {"threshold": subject.k, "members": [subject_to_json(member) for member in subject.members]}
    return {"object": subject.digest.hex()}
