"""`maia audit checkpoint|prove|check-proof|cosign|tiles`: an audit that others can hold its domain to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.files import read_source, write_target
from maia.cli.read.instants import now, show_instant
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.output import answer, note, write_json, write_line
from maia.errors import UsageError

if TYPE_CHECKING:
    from maia.log import Checkpoint

app = new_app()
_Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write it; `-` is standard output.")]
_Key = Annotated[str, principal_option("--key", help="The broker's key of the domain whose audit it is.")]


@app.command(epilog=examples("maia audit checkpoint", "maia audit checkpoint --out trust.checkpoint"))
def checkpoint(*, out: _Out = Path("-"), home: options.Home = Path(), json: options.Json = False) -> None:
    """Write what this home states of its audit now: how many entries, the root over them, and a signature.

    Give it to somebody else. With it they find out later whether the audit that you show still begins like this.
    """
    from maia.domain import home_checkpoint
    from maia.home import Home

    _tell(home_checkpoint(Home.open(home)), out, json=json)


@app.command(
    epilog=examples(
        "maia audit prove 17 --out entry.tlog-proof", "maia audit prove --from old.checkpoint --out grown.proof"
    )
)
def prove(
    entry: Annotated[int | None, typer.Argument(metavar="[ENTRY]", min=0, help="The number of an entry.")] = None,
    *,
    from_: Annotated[
        Path | None, typer.Option("--from", metavar="CHECKPOINT", help="Prove that nothing before this changed.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option("--checkpoint", metavar="FILE", help="Prove against this one, not the newest.")
    ] = None,
    out: _Out = Path("-"),
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Prove that an entry is in the audit, or that the audit begins with the one that was stated before.

    Whoever has the broker's public key checks it with `maia audit check-proof`, without this home. A proof of an entry
    shows that entry, and of the others nothing.
    """
    from maia.domain import prove_consistency, prove_entry
    from maia.home import Home

    if (entry is None) == (from_ is None):
        raise UsageError("name an entry, or a checkpoint with --from", code="NOTHING_NAMED")
    opened = Home.open(home)
    if from_ is not None:
        proof = prove_consistency(opened, _read(from_))
    else:
        proof = prove_entry(opened, entry or 0, None if against is None else _read(against))
    if json:
        write_json({"proof": proof.text, "size": proof.checkpoint.size})
        return
    write_target(out, proof.text.encode())


@app.command(
    "check-proof",
    epilog=examples(
        "maia audit check-proof entry.tlog-proof --key trust",
        "maia audit check-proof grown.proof --key trust --checkpoint old.checkpoint",
        "maia audit check-proof entry.tlog-proof --key trust --cosigned-by met --cosigned-by ccs",
    ),
)
def check_proof(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The proof.")],
    *,
    key: _Key,
    old: Annotated[
        Path | None, typer.Option("--checkpoint", metavar="FILE", help="The older checkpoint, as you kept it.")
    ] = None,
    cosigned_by: Annotated[
        list[str] | None, principal_option("--cosigned-by", help="Who must have cosigned it as well. Repeatable.")
    ] = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Check a proof from somebody's audit with the key of its broker alone; exits 4 when it proves nothing.

    The home is only where keys are looked up by name.
    """
    from maia.errors import VerificationError
    from maia.home import Folder
    from maia.log import INCLUSION, check_consistency, check_inclusion, cosigners, parse_proof

    folder = Folder(home)
    proof, broker = parse_proof(read_source(str(file))), folder.key(key)
    said = proof.checkpoint
    if proof.kind == INCLUSION:
        if old is not None:
            raise UsageError("--checkpoint goes with a proof of consistency", code="USAGE")
        check_inclusion(proof, broker)
        what, line = "entry", proof.entry.decode("ascii", "replace")
    else:
        if old is None:
            raise UsageError("name the older checkpoint with --checkpoint, as you kept it", code="NOTHING_NAMED")
        before = _read(old)
        if before.size != proof.number:
            raise VerificationError("the proof is about another checkpoint than this", code="AUDIT_FORKED")
        check_consistency(before, said, broker, proof.hashes)
        what, line = "consistency", f"the first {before.size} of {said.size} entries are as they were"
    wanted = {name: folder.key(name) for name in cosigned_by or ()}
    signed = dict(cosigners(said, wanted.values()))
    for name, one in wanted.items():
        if one not in signed:
            raise VerificationError(f"`{name}` did not cosign it", code="NOT_COSIGNED")
    seen = {name: show_instant(signed[one]) for name, one in wanted.items()}
    by = f", cosigned by {', '.join(seen)}" if seen else ""
    answer(
        {"proves": what, "number": proof.number, "size": said.size, "entry": line if what == "entry" else None,
         "cosigned": seen},
        line, f"proven against {said.size} entries{by}", json=json,
    )  # fmt: skip


@app.command(
    epilog=examples(
        "maia audit cosign trust.checkpoint --key trust --as met --out cosigned.checkpoint",
        "maia audit cosign trust.checkpoint --key trust --as met --proof grown.proof",
    )
)
def cosign(
    file: Annotated[Path, typer.Argument(metavar="CHECKPOINT", help="What another domain states of its audit.")],
    *,
    key: _Key,
    as_: Annotated[str, principal_option("--as", help="Who cosigns; its private key signs.")],
    proof: Annotated[
        Path | None, typer.Option("--proof", metavar="FILE", help="That it continues what was cosigned before.")
    ] = None,
    out: _Out = Path("-"),
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Sign beside another domain what it states of its audit, and remember it; exits 4 when it is another history.

    A domain that shows one audit to you and another one to somebody else needs two cosigned checkpoints that do not
    continue one another, and this home gives it only one.
    """
    from maia.cli.read.signers import open_signer
    from maia.domain import cosign_checkpoint
    from maia.home import Folder, Home
    from maia.log import parse_proof

    folder = Folder(home)
    shown = None if proof is None else parse_proof(read_source(str(proof)))
    signer = open_signer(folder.key(as_), folder, passphrase_file)
    signed = cosign_checkpoint(Home.open(home), _read(file), folder.key(key), signer, proof=shown, at=now())
    _tell(signed, out, json=json)


@app.command(epilog=examples("maia audit tiles /srv/www/audit"))
def tiles(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write them, for a server of files.")],
    *,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Write the audit's tree as tiles, in the layout of C2SP tlog-tiles: hashes and the checkpoint, no entries.

    Run it again to add what is new. A folder that holds another audit is refused.
    """
    from maia.domain import write_tiles
    from maia.home import Home

    stated, written = write_tiles(Home.open(home), folder)
    answer({"size": stated.size, "files": written}, f"{stated.size} entries, {written} files", json=json)


def _read(path: Path) -> Checkpoint:
    from maia.log import parse_checkpoint

    return parse_checkpoint(read_source(str(path)))


def _tell(found: Checkpoint, out: Path, *, json: bool) -> None:
    if json:
        write_json({"size": found.size, "origin": found.origin, "checkpoint": found.text})
        return
    write_target(out, found.text.encode())
    if str(out) != "-":
        write_line(f"{found.size} entries")
        note("keep it where this home cannot reach it")
