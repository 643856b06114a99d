"""`maia domain init|migrate|invite|appoint|join|members|agree|repair`: a domain's home, members, and other domains."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from maia.cli.domain import peers, structure
from maia.cli.read import options
from maia.cli.read.answers import confirm
from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.instants import parse_instant_text, show_instant
from maia.cli.read.options import examples, new_app
from maia.cli.read.services import Served
from maia.cli.show.output import note, printable, write_json, write_line
from maia.encoding import counted
from maia.errors import UsageError

app = new_app("Make and keep the home of a domain.")
app.add_typer(peers.app)
app.add_typer(structure.app)
_MAX_NAME = 200


@app.command(
    epilog=examples("maia domain init clinic", "maia domain init met --network 'pito/UK Police Network' --name Met")
)
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the home is made; it may exist.")],
    *,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="What people call the domain; else the folder's name.")
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            "--network",
            metavar="OWNER/NAME",
            help="The network it belongs to; OWNER is a key's name, or `2 of (a, b, c)`.",
        ),
    ] = None,
    key: Annotated[
        bool, typer.Option("--key", help="Also make the domain's own key, and a folder for its policy.")
    ] = False,
    log: Annotated[
        str | None,
        typer.Option(
            "--log", metavar="PLACE", help="Where the log is, when not in the home: a folder, `s3://…`, `kafka://…`."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Make a home: its settings in `maia.toml` and a key for its broker, which seals and signs what it publishes.

    The broker's key has no passphrase, since a broker works unattended; only its file's mode guards it. With --key the
    home can run the domain itself: the key `domain` issues what `policy/*.rules` gives to its members.
    """
    from maia.home import Home, HomeConfig

    called = folder.resolve().name if name is None else name
    owner, mark, rest = ("", "", "") if network is None else network.partition("/")
    if network is not None and not (mark and rest):
        raise UsageError(f"`{network}` does not say whose network it is; write OWNER/NAME", code="NETWORK_TEXT")
    for text in (called, rest):
        if not text.isprintable() or len(text) > _MAX_NAME:
            raise UsageError("a name is one line of at most 200 printable characters", code="DOMAIN_NAME")
    config = HomeConfig(
        name=called, network=(_owner(owner), rest) if network is not None else None,
        log="log" if log is None else _place(log),
    )  # fmt: skip
    home = Home.create(folder, config)
    broker = home.key(config.broker)
    domain = home.new_key(config.domain).public_key if key else None
    if key:
        (folder / "policy").mkdir(exist_ok=True)
    if json:
        write_json(
            {"home": str(folder), "name": called, "broker": broker.fingerprint, "key": broker.raw.hex(),
             "network": network, "domain": None if domain is None else domain.raw.hex()}
        )  # fmt: skip
        return
    write_line(f"{printable(called)}: a home in {printable(str(folder))}, broker {broker.fingerprint}")
    if domain is not None:
        write_line(f"the domain's key is {domain.fingerprint}")
    where = printable(str(folder))
    if network is not None:
        note(f"next: `maia key import {owner} FILE` brings the public key of the network's owner")
    note(f"next: export MAIA_HOME={where}; `maia key new NAME` makes keys for people, `maia type define` event types,")
    note("      `maia grant` gives rights, also to the broker; `maia status` says what is missing")


def _place(text: str) -> str:
    """Check where a log is: the address of a store, or a folder, from wherever the command is given."""
    if "://" not in text:
        return str(Path(text).resolve())
    from maia.log import check_address

    return check_address(text)


def _owner(text: str) -> str:
    """Check the owner of a network: a key's name, or a threshold of such names."""
    from maia.home import check_key_name

    found = re.fullmatch(r"\s*(\d{1,4})\s+of\s*\(([^()]*)\)\s*", text)
    if found is None:
        return check_key_name(text)
    names = [check_key_name(name.strip()) for name in found[2].split(",")]
    if not 0 < int(found[1]) <= len(set(names)) == len(names):
        raise UsageError(f"`{text}` is no threshold of different keys", code="NETWORK_TEXT")
    return f"{int(found[1])} of ({', '.join(names)})"


@app.command(epilog=examples("maia domain migrate --dry-run", "maia domain migrate --home met"))
@unpacked
def migrate(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would be written, and write nothing.")] = False,
    place: CommandPlace,
) -> None:
    """Bring a home that an earlier Maia made to this Maia's format; one that is there already is left alone.

    Stop what runs on the home first, and keep a copy of it. Stopped halfway, it goes on when it runs
    again. The log has a migration of its own.
    """
    from maia.home import migrate_home

    done = migrate_home(place.home, at=place.instant, dry_run=dry_run)
    if place.json:
        write_json({"before": done.before, "after": done.after, "steps": list(done.steps), "dry_run": dry_run})
        return
    for step in done.steps:
        write_line(printable(step))
    what = "is" if done.before == done.after else "would be" if dry_run else "is now"
    note(f"the home {what} of format {done.after}")


@app.command(
    epilog=examples(
        "maia domain invite smith --appoint 'detective(smith)'", "maia domain invite met-broker-1 --kind broker"
    )
)
@unpacked
def invite(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the policy will call the member.")],
    *,
    kind: Annotated[str, typer.Option("--kind", metavar="KIND", help="client, broker or domain.")] = "client",
    appointments: Annotated[
        list[str] | None, typer.Option("--appoint", metavar="FACT", help="Recorded when the member joins. Repeatable.")
    ] = None,
    until: options.Until = None,
    served: Served,
) -> None:
    """Invite a principal to the domain; the code is shown once, works once, and is not kept."""
    from maia.access_control import MemberKind

    kinds = {item.value: item for item in MemberKind}
    if kind not in kinds:
        raise UsageError(f"`{kind}` is no kind of member; write client, broker or domain", code="MEMBER_KIND")
    at = served.instant
    ends = parse_instant_text(until or "+1d", at=at)
    code = served.service.invite(name, at=at, kind=kinds[kind], life=ends - at, appointments=appointments or ())
    if served.json:
        write_json({"name": name, "kind": kind, "invitation": code, "until": show_instant(ends)})
        return
    write_line(code)
    note(f"for {name}, until {show_instant(ends)}: `maia domain join DIR --invitation-file FILE --as NAME`")


@app.command(epilog=examples("maia domain appoint smith 'detective(smith)' --key smith --until +30d --out smith.cert"))
@unpacked
def appoint(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the policy will call whoever joins with it.")],
    fact: Annotated[str, typer.Argument(metavar="FACT", help="What it is appointed to, such as `detective(smith)`.")],
    *,
    key: Annotated[str, options.principal_option("--key", help="The key that it is for; no other can use it.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the certificate goes; `-` is stdout.")],
    until: options.Until = None,
    served: Served,
) -> None:
    """Sign an appointment that its holder brings along when it joins; it stands in the register and can be revoked.

    `maia revoke ID` ends it: nobody joins with it any more, and what stood on the fact falls.
    """
    from maia.cli.read.files import write_target

    signed = served.service.issue_appointment(
        served.folder.key(key), name, fact, at=served.instant, until=served.moment(until)
    )
    served.opened.certificates.add(signed)
    write_target(out, signed.raw)
    if str(out) == "-":
        return
    identity, ends = signed.certificate_id.hex(), show_instant(signed.body.period.not_after)
    if served.json:
        write_json({"id": identity, "name": name, "fact": fact, "until": ends})
    else:
        write_line(identity)
        note(f"for {name}: `maia domain join DIR --appointment {out} --as NAME`")


@app.command(
    epilog=examples(
        "maia domain join /srv/met --invitation-file code --as smith",
        "maia domain join https://acs.met.example --key met --invitation-file code --as smith",
    )
)
@unpacked
def join(
    domain: Annotated[str, typer.Argument(metavar="DOMAIN", help="The domain's home, or the address of its service.")],
    *,
    key: Annotated[
        str | None, options.principal_option("--key", help="The domain's key, when its service is far away.")
    ] = None,
    as_: Annotated[str, options.principal_option("--as", help="The key that joins; its private key proves it.")],
    invitation_file: Annotated[
        Path | None,
        typer.Option("--invitation-file", metavar="FILE", help="Holds the code of the invitation; `-` is stdin."),
    ] = None,
    appointment_file: Annotated[
        Path | None,
        typer.Option("--appointment", metavar="FILE", help="An appointment of the domain, in place of an invitation."),
    ] = None,
    served: Served,
) -> None:
    """Become a member of a domain: prove a key, show an invitation or an appointment, keep the first certificates."""
    from maia.cli.read.files import read_source
    from maia.cli.read.signers import open_signer
    from maia.clients import join_here, join_over_http
    from maia.domain import keep_handed

    if (invitation_file is None) == (appointment_file is None):
        raise UsageError("show an invitation or an appointment", code="ENROLMENT")
    code, appointment = None, None if appointment_file is None else read_source(str(appointment_file))
    if invitation_file is not None:
        code = read_source(str(invitation_file)).decode("ascii", "replace").strip()
    folder, own = served.folder, served.opened
    signer = open_signer(folder.key(as_), folder, served.passphrase_file)
    if "://" in domain:
        if key is None:
            raise UsageError("name the domain's key with --key: only its service may answer", code="JOIN_ADDRESS")
        joined = join_over_http(domain, folder.key(key), signer, code, appointment=appointment)
    else:
        service = Served(home=Path(domain)).service
        joined = join_here(service, signer, code, at=served.instant, appointment=appointment)
    keep_handed(own, joined.evidence, joined.statements)
    if not own.public_path(own.config.domain).exists():
        own.add_public_key(own.config.domain, joined.domain)
    if served.json:
        write_json(
            {"member": joined.name, "kind": joined.kind, "domain": joined.domain.raw.hex(),
             "certificates": len(joined.evidence)}
        )  # fmt: skip
        return
    write_line(printable(f"{joined.name} is a {joined.kind} of the domain {joined.domain.fingerprint}"))
    note(f"kept {counted(len(joined.evidence), 'certificate')} in this home")


@app.command(epilog=examples("maia domain members", "maia domain members --json"))
@unpacked
def members(*, served: Served) -> None:
    """List the members of the domain, and those that are gone."""
    found = served.service.members(at=served.instant)
    if served.json:
        rows = [
            {"name": item.name, "kind": item.kind.value, "key": item.key.raw.hex(), "joined": show_instant(item.joined),
             "gone": show_instant(item.gone)}
            for item in found
        ]  # fmt: skip
        write_json({"members": rows})
        return
    for item in found:
        gone = "" if item.gone is None else f"  gone since {show_instant(item.gone)}"
        write_line(printable(f"{item.name:<24} {item.kind.value:<7} {item.key.fingerprint}{gone}"))
    if not found:
        note("there are no members: `maia domain invite NAME` invites one")


@app.command(epilog=examples("maia domain journal", "maia domain journal --after 100 --json"))
@unpacked
def journal(
    *,
    after: Annotated[int, typer.Option("--after", min=0, metavar="NUMBER", help="Begin after this line.")] = 0,
    served: Served,
) -> None:
    """Show what the service of the domain did, oldest first; who uses a role anonymously is not named."""
    found = served.service.journal(after=after)
    if served.json:
        rows = [
            {"number": item.number, "at": show_instant(item.at), "action": item.action, "who": item.who,
             "what": item.what}
            for item in found
        ]  # fmt: skip
        write_json({"lines": rows})
        return
    for item in found:
        write_line(printable(f"{item.number:>6} {show_instant(item.at)} {item.action} {item.what} {item.who or ''}"))
    if not found:
        note("the journal has no such lines")


@app.command(
    epilog=examples(
        "maia domain agree dispensing.agreement --with pharmacy \\",
        "    --give 'pharmacist |- subscribe Prescription(drug, dose)'",
        "maia domain agree dispensing.agreement --yes",
    )
)
@unpacked
def agree(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The agreement; made with --with, else read.")],
    *,
    with_: Annotated[
        str | None, options.principal_option("--with", help="The other domain's key: draft an agreement with it.")
    ] = None,
    give: Annotated[
        list[str] | None,
        typer.Option(
            "--give", metavar="ROW", help="`role |- right`: what a role of the other domain may do. Repeatable."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Sign without asking.")] = False,
    served: Served,
) -> None:
    """Agree with another domain on which of its roles may read what.

    The giver drafts and signs; the other signs what it reads; then the giver runs this again and issues what was
    agreed. A signed agreement is kept in `policy/`.
    """
    from maia.domain import AgreementState, advance_agreement, draft_and_sign

    def ask(state: AgreementState) -> None:
        if state.unknown:
            note("this home knows none of the types: the rights count as they are, not the words")
        for row in state.signed.agreement.rows:
            note(f"{row.role} |- {row.words}")
        if not yes:
            confirm(f"Sign `{state.signed.agreement.title}`?", otherwise="not signed")

    home, service, at = served.opened, served.service, served.instant
    if with_ is not None:
        other = served.folder.key(with_)
        state = draft_and_sign(home, service, served.signer, file, other=other, rows=give or [], at=at)
    else:
        state = advance_agreement(home, service, lambda: served.signer, file, at=at, confirm=ask)
    if served.json:
        write_json(state.to_json())
        return
    for row in state.signed.agreement.rows:
        write_line(printable(f"{row.role} |- {row.words}"))
    note(f"{state.signed.agreement.title}: {state.words}; signed by {state.signatures} of 2")


@app.command(epilog=examples("maia domain repair", "maia domain repair --json"))
@unpacked
def repair(*, served: Served) -> None:
    """Let the register take over what its domain's lists say, after its database was restored from an older copy.

    A register that is older than the lists that the home or the log shows signs nothing (`REGISTER_BEHIND`): it would
    bring back what was revoked since. This notes all of it as revoked and goes on above the highest number. Members,
    roles and certificates that are newer than the copy are not known to it: look through them, and revoke by id.
    """
    found = served.service.repair(at=served.instant)
    served.service.beat(at=served.instant)
    if served.json:
        write_json(
            {"numbers": {kind.value: number for kind, number in found.number.items()},
             "certificates": sorted(item.hex() for item in found.certificates)}
        )  # fmt: skip
        return
    for kind, number in found.number.items():
        write_line(f"{kind.value}: the register goes on after list {number}")
    note(f"took over {counted(len(found.certificates), 'revocation')}")
