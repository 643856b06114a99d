"""`maia policy xml check|decide|grant|import|schema`: XML policies of image streams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from maia.cli.grant.issuing import Issuing
from maia.cli.read import options
from maia.cli.read.bundles import RightOptions, unpacked
from maia.cli.read.options import examples, new_app
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import answer, note, printable, write_json, write_line
from maia.encoding import counted
from maia.errors import DeniedError, UsageError

if TYPE_CHECKING:
    from maia.policy import xml

app = new_app("XML policies: who sees which camera, through which handlers, and who installs which filter.")
_Policies: TypeAlias = Annotated[list[str], typer.Argument(metavar="POLICY", help="Files, or https:// addresses.")]
_Roles: TypeAlias = Annotated[
    list[str] | None, typer.Option("--role", metavar="ROLE", help="A role that the user has; repeatable.")
]
_Zone: TypeAlias = Annotated[
    str, typer.Option("--zone", metavar="ZONE", help="The time zone whose clock the hours of a policy mean.")
]


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """Whose settings allow hosts to be asked, and for whom the answer is written."""

    home: options.Home = Path()
    json: options.Json = False

    def policies(self, sources: list[str]) -> list[xml.XmlPolicy]:
        """Read all of them, or refuse."""
        return _read_policies(self.home, sources)


@app.command(epilog=examples("maia policy xml check avs.xml", "maia policy xml check avs.xml night.xml --json"))
@unpacked
def check(policies: _Policies, *, reading: _Reading) -> int:
    """Say what is wrong with XML policies, with line and column; exits 1 when one is not valid.

    Rules that change nothing are warnings.
    """
    from maia.policy import PolicySyntaxError, Severity, xml

    found: list[tuple[str, str, str, int, int, str]] = []
    for source in policies:
        try:
            idle = xml.find_idle(reading.policies([source])[0])
        except PolicySyntaxError as error:
            found.append((source, Severity.ERROR.value, error.code, error.line, error.column, error.message))
        else:
            found += [(source, item.severity.value, item.code, item.line, item.column, item.message) for item in idle]
    errors = sum(row[1] == Severity.ERROR.value for row in found)
    code = ExitCode.FAILED if errors else ExitCode.DONE
    if reading.json:
        fields = ("file", "severity", "finding", "line", "column", "message")
        write_json({"findings": [dict(zip(fields, row, strict=True)) for row in found]}, code=code)
        return code
    for name, severity, _, line, column, message in found:
        shown = message if severity == Severity.ERROR.value else f"`{name}`: line {line}, column {column}: {message}"
        write_line(printable(f"{severity}: {shown}"))
    told = (counted(len(policies), "policy", "policies"), counted(errors, "error"))
    note(", ".join((*told, counted(len(found) - errors, "warning"))))
    return code


@app.command(
    epilog=examples(
        "maia policy xml decide avs.xml --see X Y --at 22:00",
        "maia policy xml decide avs.xml --install X greyscale c1 --role end-user --json",
    )
)
@unpacked
def decide(
    policies: _Policies,
    *,
    see: Annotated[
        tuple[str, str] | None, typer.Option("--see", metavar="USER CAMERA", help="May the user see the camera?")
    ] = None,
    install: Annotated[
        tuple[str, str, str] | None,
        typer.Option("--install", metavar="USER FILTER CHANNEL", help="May the user install the filter there?"),
    ] = None,
    role: _Roles = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="HH:MM", help="The time of the day, in place of now.")
    ] = None,
    zone: _Zone = "UTC",
    reading: _Reading,
) -> int:
    """Decide a request under all policies together, and say which rules decided; exits 3 when it is denied.

    Deny overrides. Who may see a camera sees it through the handlers that are listed.
    """
    from maia.policy import xml

    roles = frozenset(role or ())
    asked: xml.See | xml.Install
    if see is not None and install is None:
        asked = xml.See(user=see[0], camera=see[1], roles=roles)
    elif install is not None and see is None:
        asked = xml.Install(user=install[0], filter=install[1], channel=install[2], roles=roles)
    else:
        raise UsageError("ask with --see USER CAMERA or with --install USER FILTER CHANNEL")
    decision = xml.decide(reading.policies(policies), asked, at=_clock(at, zone))
    code = ExitCode.DONE if decision else ExitCode.DENIED
    cited = [{"file": policies[rule.policy], "line": rule.line} for rule in decision.cited]
    handlers = [handler.to_json() for handler in decision.handlers]
    word = "allow" if decision else "deny"
    lines = [f"{word} ({decision.reason})", *(f"through {handler}" for handler in decision.handlers)]
    lines += [f"by {rule['file']}, line {rule['line']}" for rule in cited]
    data: dict[str, object] = {"decision": word, "reason": decision.reason, "handlers": handlers, "rules": cited}
    answer(data, *lines, json=reading.json, code=code)
    return code


@app.command(
    epilog=examples(
        "maia policy xml grant avs.xml --user X --camera Y --type met/Camera.Y --from met --to x",
        "maia policy xml grant https://policies.example/avs.xml --user X --camera Y --type met/Camera.Y \\",
        "    --from met --to x --zone Europe/London --until +1d",
    )
)
@unpacked
def grant(
    policies: _Policies,
    *,
    user: Annotated[str, typer.Option("--user", metavar="USER", help="Who asks, as the policies name it.")],
    camera: Annotated[str, typer.Option("--camera", metavar="CAMERA", help="For which camera.")],
    type_: Annotated[str, typer.Option("--type", metavar="OWNER/NAME[@VERSION]", help="The event type of its stream.")],
    role: _Roles = None,
    zone: _Zone = "UTC",
    issuing: Issuing,
) -> None:
    """Issue what the policies leave to a user: a right to subscribe to a camera's stream, at the hours they allow.

    What is denied at some hours is not denied by the certificate: its condition holds at the others. Where the policies
    force handlers, a right on the stream itself would go around them, and none is issued. The home's own policies, in
    `policy/*.xml`, count beside those that are named.
    """
    from maia.domain import OWN_ZONE, OwnPolicies
    from maia.policy import xml

    asked = xml.See(user=user, camera=camera, roles=frozenset(role or ()))
    left = [xml.entitle(_read_policies(issuing.home, policies), asked, zone=zone)]
    # SECURITY: the home's own policies count, whatever is named beside them.
    own = OwnPolicies(issuing.folder).now()
    left += [xml.entitle(own, asked, zone=OWN_ZONE)] if own else []
    if any(item.handlers for item in left):
        # SECURITY: whoever holds a right on the stream itself sees it without the handlers.
        told = ", ".join(dict.fromkeys(str(handler) for item in left for handler in item.handlers))
        raise DeniedError(
            f"frames of `{printable(camera)}` reach `{printable(user)}` only through {told}; a right on the stream "
            "itself is not given",
            code="HANDLERS_DUE",
        )
    right = RightOptions(type_=type_, action=["subscribe"]).right(issuing.folder)
    more = [item.condition for item in left if item.condition is not None]
    replace(issuing, condition=[*(issuing.condition or ()), *more]).issue(right)


@app.command("import", epilog=examples("maia policy xml import matrix.csv", "maia policy xml import - --out avs.xml"))
def import_(
    matrix: Annotated[str, typer.Argument(metavar="FILE", help="An access matrix in CSV; `-` is stdin.")],
    *,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the policy to a file.")] = None,
    json: options.Json = False,
) -> None:
    """Write an access matrix (users, cameras, filters) as an XML policy that decides the same.

    The first line names the columns: `user`, cameras, `filter:NAME` or `filter:NAME@CHANNEL`. Cells of cameras hold
    `allow`, `deny`, `deny 22:00-06:00`, `blur lower-half`, with `;` between them; an empty cell gives nothing.
    """
    from maia.cli.read.files import read_source, write_target
    from maia.errors import EncodingError
    from maia.policy import xml

    try:
        made = xml.import_matrix(read_source(matrix).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise EncodingError(f"`{printable(matrix)}` is not UTF-8", code="MATRIX_SYNTAX") from error
    rules = len(xml.parse_xml(made).rules)
    if out is not None:
        write_target(out, made.encode("utf-8"))
    if json:
        write_json({"rules": rules, **({"policy": made} if out is None else {"file": str(out)})})
        return
    if out is None:
        write_line(made.rstrip("\n"))
    note(counted(rules, "rule"))


@app.command(epilog=examples("maia policy xml schema > policy.xsd"))
def schema(*, json: options.Json = False) -> None:
    """Print the XML schema of policies, for editors and for programs that write them."""
    from maia.policy import xml

    text = xml.schema()
    answer({"namespace": xml.NAMESPACE, "schema": text}, *text.splitlines(), json=json)


def _read_policies(home: Path, sources: list[str]) -> list[xml.XmlPolicy]:
    """Read policies from files and addresses; all of them, or refuse."""
    from maia.domain import read_xml_policy
    from maia.home import Folder

    folder = Folder(home)
    return [read_xml_policy(folder, source) for source in sources]


def _clock(text: str | None, zone: str) -> time:
    """Read a time of the day; now, by the clock of a zone, when there is none."""
    from maia.cli.read.instants import decision_instant
    from maia.domain import policy_clock
    from maia.policy import xml

    now = policy_clock(decision_instant(None), zone)
    if text is None:
        return now
    found = xml.parse_clock(text)
    if found is None:
        raise UsageError(f"`{printable(text)}` is no time of the day: `HH:MM`, from `00:00` to `23:59`")
    return found
