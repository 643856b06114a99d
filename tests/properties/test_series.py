"""One series of lists, whoever makes them: numbers rise, and what was revoked stays revoked, in any order of makers."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maia.authority import ListStatement, Statement, StatementBook
from maia.domain import make_list, open_register
from maia.errors import RevokedError
from maia.home import Folder, Home, HomeConfig, SeriesFile
from maia.log import NoticeLog, StatementSubscription
from maia.principals import CertificateId, KeySigner, OnlineTest
from maia.principals import TestKind as Kind

BEGIN = datetime(2026, 6, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
IDS = [CertificateId(bytes([n]) * 32) for n in range(1, 9)]
ACTS = st.lists(
    st.tuples(st.sampled_from(("hand", "timed", "service", "beat", "open")), st.sampled_from(IDS)),
    min_size=1,
    max_size=9,
)


def told(home: Home, signer: KeySigner) -> list[Statement]:
    """List what the log says under a key, in order."""
    return list(StatementSubscription(NoticeLog(home.log_path), signer.public_key.key_id).updates())


@settings(max_examples=25, deadline=None)
@given(acts=ACTS, other=st.booleans())
def test_random_makers_make_one_series(acts: list[tuple[str, CertificateId]], other: bool) -> None:
    """By hand, by the service and by the home that renews: no number comes twice, and the union never shrinks."""
    with tempfile.TemporaryDirectory() as root:
        home = Home.create(Path(root) / "met", HomeConfig(name="met"))
        signer = home.new_key("owner" if other else "domain")
        folder, at = Folder(home.path), BEGIN
        revoked: set[CertificateId] = set()
        for act, identity in acts:
            at += HOUR
            if act == "service" and not other:
                with open_register(home, signer) as service:
                    service.state(Kind.CRL, at=at, revoke={identity: None})
                revoked.add(identity)
            elif act == "beat" and not other:
                with open_register(home, signer) as service:
                    service.beat(at=at)
            elif act == "timed":
                record = SeriesFile(home.path, signer.public_key.key_id).record(Kind.CRL)
                starts = max(at, record.ends or at)
                make_list(folder, signer, Kind.CRL, at=at, revoke={identity: None}, interval=(starts, starts + HOUR))
                revoked.add(identity)
            elif act == "hand":
                make_list(folder, signer, Kind.CRL, at=at, revoke={identity: None})
                revoked.add(identity)
            lists = told(home, signer)
            heard = [item.body for item in lists if isinstance(item.body, ListStatement)]
            numbers = [body.sequence for body in heard]
            assert numbers == sorted(set(numbers))
            assert not heard or heard[-1].certificates >= revoked
            in_force = any(body.timed and body.in_force(at) for body in heard)
            if in_force or (heard and not any(body.timed for body in heard)):
                check_all_revoked(lists, signer, revoked, at=at)


def check_all_revoked(lists: list[Statement], signer: KeySigner, revoked: set[CertificateId], *, at: datetime) -> None:
    """Ask a verifier that read the lists, in order, about everything that was revoked."""
    book = StatementBook()
    for statement in lists:
        book.accept_unless_known(statement)
    for gone in revoked:
        with pytest.raises(RevokedError):
            book.check(OnlineTest(Kind.CRL, signer.public_key), gone, at=at)
