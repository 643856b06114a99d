"""`maia statement crl|revalidation|one-time|show|add`: what signers say about the validity of certificates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from maia.authority import ListStatement, OneTimeAnswer, issue_statement, parse_statement, verify_statement
from maia.cli.read import options
from maia.cli.read.bundles import CommandPlace, Signing, unpacked
from maia.cli.read.files import read_source, write_target
from maia.cli.read.instants import optional_instant
from maia.cli.read.options import certificate_argument, examples, new_app, principal_option
from maia.cli.read.question import parse_nonce
from maia.cli.read.signers import open_signer
from maia.cli.show.output import draw, note, write_json
from maia.cli.show.statements import statement_to_json, statement_tree, tell_statement, told_words
from maia.errors import UsageError
from maia.home import Folder
from maia.principals import TestKind

app = new_app("Make and keep validity statements.", "maia statement crl --from met", "maia statement show")
_Signer = Annotated[str, principal_option("--from", help="Who states it: the key that certificates name.")]
_Good = Annotated[list[str], certificate_argument("Certificates that are good.")]


@dataclass(frozen=True, kw_only=True)
class _Listing(Signing):
    """As `Signing`, for a list: who signs it, and when it is in force."""

    signer_text: _Signer
    starts: Annotated[
        str | None,
        typer.Option("--starts", metavar="INSTANT", help="Start of a timed list; the end of the last one by default."),
    ] = None
    ends: Annotated[
        str | None,
        typer.Option(
            "--until", metavar="INSTANT", help="End of a timed list (exclusive); `+1d` counts from its start."
        ),
    ] = None
    sequence: Annotated[
        int | None, typer.Option("--sequence", min=0, help="Sequence number; one above the last by default.")
    ] = None

    def sign(self, kind: TestKind, texts: list[str]) -> None:
        """Sign the list that follows all that were ever signed: plain when it revokes, unless it is to be timed."""
        from maia.domain import known_series, make_list

        folder, instant = self.folder, self.instant
        key = folder.key(self.signer_text)
        named = folder.certificate_ids(texts)
        series = known_series(folder, key, kind, at=instant)
        revoke = {} if kind is not TestKind.CRL else {item: folder.ends(item) for item in named - series.certificates}
        interval = None
        if not revoke or self.starts is not None or self.ends is not None:
            starts = self.moment(self.starts)
            begin = series.next_start(at=instant) if starts is None else starts
            ends = optional_instant(self.ends, at=begin)
            interval = series.next_interval(at=instant, starts=starts, ends=ends)
        made = make_list(
            folder, self.signer(key), kind, at=instant, revoke=revoke, interval=interval, sequence=self.sequence,
            good=named if kind is TestKind.REVALIDATION else frozenset(),
        )  # fmt: skip
        self.write(made.statement.raw)
        tell_statement(made.body, folder, json=self.json, quiet=self.silent)
        note(told_words(made.told))


@app.command(
    epilog=examples("maia statement crl --from met", "maia statement crl 3fa1c9 --from met --until +1d --out met.crl")
)
@unpacked
def crl(
    certificates: Annotated[
        list[str] | None, certificate_argument("Certificates that are revoked, besides those of earlier lists.")
    ] = None,
    *,
    listing: _Listing,
) -> None:
    """Sign a list of revoked certificates, the next one in the signer's series, and tell the log of this home.

    It names everything that the signer revoked before as well. With an end it is a timed CRL: when it lapses and no
    successor is there, every certificate that demands it is invalid. Without one it is a plain CRL, which takes away at
    once wherever it is heard, whatever timed lists are signed already.
    """
    listing.sign(TestKind.CRL, certificates or [])


@app.command(epilog=examples("maia statement revalidation 3fa1c9 77be02 --from met --until +1d"))
@unpacked
def revalidation(certificates: _Good, *, listing: _Listing) -> None:
    """Sign a timed list of certificates that are good; those it leaves out are not."""
    listing.sign(TestKind.REVALIDATION, certificates)


@app.command(
    "one-time",
    epilog=examples(
        "maia statement one-time 3fa1c9 --from met --nonce 9f3c61b2a8d04e75c1f09a3be2d47786 --verifier broker-1"
        " --out answer"
    ),
)
def one_time(
    certificates: _Good,
    *,
    signer: _Signer,
    nonce: Annotated[str, typer.Option("--nonce", metavar="HEX", help="The verifier's nonce.")],
    verifier: Annotated[str, typer.Option("--verifier", metavar="NAME", help="The verifier that asked.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write the answer; `-` is stdout.")],
    home: options.Home = Path(),
    passphrase_file: options.PassphraseFile = None,
    json: options.Json = False,
) -> None:
    """Answer one challenge of one verifier: these certificates are good, for that decision and no other."""
    place = Folder(home)
    key, ids = place.key(signer), place.certificate_ids(certificates)
    body = OneTimeAnswer(signer=key, nonce=parse_nonce(nonce), verifier=verifier, certificates=ids)
    write_target(out, issue_statement(body, open_signer(key, place, passphrase_file)).raw)
    tell_statement(body, place, json=json, quiet=str(out) == "-")


@app.command(epilog=examples("maia statement show", "maia statement show met.crl --json"))
@unpacked
def show(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A signed statement; those of this home when left out.")
    ] = None,
    *,
    place: CommandPlace,
) -> None:
    """Show statements: who says what about which certificates, and whether it counts now."""
    raws = place.folder.book().raw_statements() if file is None else (read_source(str(file)),)
    bodies = [verify_statement(parse_statement(raw)).body for raw in raws]
    if place.json:
        write_json({"statements": [statement_to_json(body, at=place.instant) for body in bodies]})
        return
    if not bodies:
        note("no statements here")
    for body in bodies:
        draw(statement_tree(body, place.folder, at=place.instant))


@app.command(epilog=examples("maia statement add met.crl"))
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A signed statement; `-` is stdin.")],
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Take somebody's statement into this home, after checking its signature and its place among the others."""
    place = Folder(home)
    statement = verify_statement(parse_statement(read_source(str(file))))
    if not isinstance(statement.body, ListStatement):
        raise UsageError("a one-time answer serves one decision; give it to --statement", code="ONE_TIME_KEPT")
    book = place.book()
    book.accept(statement)
    place.statements.save(book)
    tell_statement(statement.body, place, json=json)
