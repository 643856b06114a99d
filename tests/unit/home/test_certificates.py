"""A folder of certificates: named by identity, idempotent, and evidence only."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from maia.authority import VerifierLimits
from maia.errors import EncodingError, NotFoundError, UncheckedError, UsageError
from maia.home import CertificateFolder
from maia.home import certificates as certificates_module
from maia.principals import Certificate, CertificateId, KeySigner, Naming, issue, unsafe_sign_certificate

MET, SMITH, JONES = (KeySigner(bytes([n]) * 32) for n in (1, 2, 3))
AT = datetime(2026, 6, 1, 12, tzinfo=UTC)


def naming(name: str, subject: KeySigner = SMITH) -> Certificate:
    """A name of Met's."""
    return issue(Naming(issuer=MET.public_key, name=name, subject=subject.public_key), MET)


def test_a_certificate_is_kept_under_its_identity_and_read_back(tmp_path: Path) -> None:
    """The file is the canonical bytes, its name the first 16 digits."""
    folder = CertificateFolder(tmp_path / "certificates")
    certificate = naming("smith")
    path = folder.add(certificate)
    assert path == tmp_path / "certificates" / f"{certificate.certificate_id.hex()[:16]}.cert"
    assert list(folder) == [(path, certificate.raw)]
    assert certificate.certificate_id in folder.pool()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_adding_twice_changes_nothing(tmp_path: Path) -> None:
    """The same certificate is one file, untouched."""
    folder = CertificateFolder(tmp_path)
    path = folder.add(naming("smith"))
    before = path.stat().st_ino
    assert folder.add(naming("smith")) == path
    assert path.stat().st_ino == before
    assert len(list(folder)) == 1


PATHS = [
    *("..", ".", "../x", "../../../../etc/cron.d/x", "/etc/passwd", "a/b", "a\\b", "..\\..\\x", "~", "~root/x", "-rf"),
    *("%2e%2e%2f", "%2e", "..%c0%af", "con", "nul", "C:\\x", "x:y", "a b", "*", "?", "$HOME", "`id`", "$(id)", ";x"),
    *(
        "&&x",
        "|x",
        ">x",
        "<x",
        "'",
        '"',
        "\u202ex",
        "\u2025",
        "\uff0e\uff0e/",
        "....//",
        ".hidden",
        "x.cert",
        "x" * 256,
    ),
    *("//", "///x", "file:///etc/passwd", "a/../b", "x/.", "é" * 128),
]


@pytest.mark.threat("T59")
@pytest.mark.parametrize("name", PATHS)
def test_a_name_that_is_a_path_stays_in_the_folder(tmp_path: Path, name: str) -> None:
    """Names never become paths: each certificate is one plain file of the folder, whatever it is called."""
    root = tmp_path / "outer" / "certificates"
    path = CertificateFolder(root).add(naming(name))
    files = [item for item in tmp_path.rglob("*") if not item.is_dir()]
    assert files == [path]
    assert path.parent == root
    assert len(path.name) == len("0123456789abcdef.cert")
    assert set(path.stem) <= set("0123456789abcdef")


def test_a_taken_short_name_gives_way_to_the_whole_one(tmp_path: Path) -> None:
    """Sixteen digits can be made to collide; neither certificate is lost."""
    folder = CertificateFolder(tmp_path)
    first, second = naming("smith"), naming("jones", JONES)
    short = tmp_path / f"{second.certificate_id.hex()[:16]}.cert"
    short.write_bytes(first.raw)
    assert folder.add(second) == tmp_path / f"{second.certificate_id.hex()}.cert"
    assert folder.add(second) == tmp_path / f"{second.certificate_id.hex()}.cert"
    assert short.read_bytes() == first.raw
    assert len(folder.pool()) == 2


def test_a_whole_name_with_foreign_content_is_put_right(tmp_path: Path) -> None:
    """A file whose content is not what its name says cannot keep a certificate out."""
    folder, wanted = CertificateFolder(tmp_path), naming("smith")
    for digits in (16, 64):
        (tmp_path / f"{wanted.certificate_id.hex()[:digits]}.cert").write_bytes(b"junk")
    assert folder.add(wanted).read_bytes() == wanted.raw


def test_nothing_in_the_folder_is_trusted(tmp_path: Path) -> None:
    """Junk is counted as refused; a forged certificate is evidence that a verifier will refuse."""
    folder = CertificateFolder(tmp_path)
    folder.add(naming("smith"))
    (tmp_path / "junk.cert").write_bytes(b"junk")
    (tmp_path / "large.cert").write_bytes(b"(" + b"9" * (1 << 17))
    (tmp_path / "forged.cert").write_bytes(
        unsafe_sign_certificate(Naming(issuer=MET.public_key, name="x", subject=JONES.public_key), JONES)
    )
    (tmp_path / "notes.txt").write_bytes(b"not looked at")
    (tmp_path / ".draft.part").write_bytes(b"left by a crash")
    (tmp_path / "folder.cert").mkdir()
    os.mkfifo(tmp_path / "pipe.cert")
    pool = folder.pool()
    assert (len(pool), len(pool.refused)) == (2, 2)


def test_a_folder_beyond_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """The bound counts files."""
    folder = CertificateFolder(tmp_path)
    for name in ("a", "b", "c"):
        folder.add(naming(name))
    assert len(folder.pool(limits=VerifierLimits(max_certificates=3))) == 3
    with pytest.raises(UncheckedError) as caught:
        folder.pool(limits=VerifierLimits(max_certificates=2))
    assert caught.value.code == "LIMIT_EXCEEDED"


def test_a_removed_certificate_is_gone_under_all_its_names(tmp_path: Path) -> None:
    """A copy that somebody made by hand goes too; the others stay."""
    folder = CertificateFolder(tmp_path)
    smith, jones = naming("smith"), naming("jones", JONES)
    folder.add(jones)
    (tmp_path / "copy.cert").write_bytes(folder.add(smith).read_bytes())
    folder.remove(smith.certificate_id)
    assert [data for _, data in folder] == [jones.raw]
    with pytest.raises(NotFoundError) as caught:
        folder.remove(smith.certificate_id)
    assert caught.value.code == "NO_CERTIFICATE"


def test_an_identity_that_is_none_removes_nothing(tmp_path: Path) -> None:
    """A short or path-like identity is a wrong call."""
    folder = CertificateFolder(tmp_path)
    folder.add(naming("smith"))
    with pytest.raises(UsageError):
        folder.remove(CertificateId(b"../" * 3))
    assert len(list(folder)) == 1


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    """No evidence, no error."""
    folder = CertificateFolder(tmp_path / "none")
    assert list(folder) == []
    assert len(folder.pool()) == 0


def test_something_else_in_place_of_a_certificate_is_not_written_through(tmp_path: Path) -> None:
    """A pipe under the certificate's name is an error, not a wait."""
    folder, wanted = CertificateFolder(tmp_path), naming("smith")
    os.mkfifo(tmp_path / f"{wanted.certificate_id.hex()[:16]}.cert")
    with pytest.raises(EncodingError) as caught:
        folder.add(wanted)
    assert caught.value.code == "FILE_KIND"


def test_the_current_pool_follows_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes, goes or changes is seen; a file that stays is read once."""
    folder = CertificateFolder(tmp_path)
    read: list[str] = []
    original = certificates_module.read_start
    monkeypatch.setattr(
        certificates_module,
        "read_start",
        lambda path, *, limit: (read.append(path.name), original(path, limit=limit))[1],
    )
    smith, jones = naming("smith"), naming("jones", JONES)
    paths = [folder.add(item) for item in (smith, jones)]
    read.clear()
    assert {item.certificate_id for item in folder.current_pool()} == {smith.certificate_id, jones.certificate_id}
    assert sorted(read) == sorted(path.name for path in paths)
    read.clear()
    late = naming("kay")
    (tmp_path / "late.cert").write_bytes(late.raw)
    (tmp_path / "noise.cert").write_bytes(b"noise")
    assert len(folder.current_pool()) == 3
    assert len(folder.current_pool().refused) == 1
    assert sorted(read) == ["late.cert", "noise.cert"]
    folder.remove(smith.certificate_id)
    read.clear()
    (tmp_path / "late.cert").unlink()
    (tmp_path / "noise.cert").write_bytes(naming("eve").raw)
    assert {item.certificate_id for item in folder.current_pool()} == {
        jones.certificate_id, naming("eve").certificate_id,
    }  # fmt: skip
    assert read == ["noise.cert"]
    assert {item.certificate_id for item in folder.pool()} == {item.certificate_id for item in folder.current_pool()}


def test_discarding_removes_what_was_added_and_nothing_else(tmp_path: Path) -> None:
    """Another certificate under the wanted name stays, as does what a person put there; twice is no error."""
    folder = CertificateFolder(tmp_path)
    smith, jones, kay = naming("smith"), naming("jones", JONES), naming("kay")
    own = folder.add(smith)
    squatting = tmp_path / f"{jones.certificate_id.hex()[:16]}.cert"
    squatting.write_bytes(kay.raw)
    second = folder.add(jones)
    assert second != squatting
    (tmp_path / "mine.cert").write_bytes(smith.raw)
    for _ in range(2):
        folder.discard([smith.certificate_id, jones.certificate_id])
        assert sorted(path.name for path, _ in folder) == sorted(["mine.cert", squatting.name])
    assert not own.exists()
