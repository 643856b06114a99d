"""What `grant` and `topic grant` share: who gives to whom, for how long and under which conditions; and the signing."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.answers import confirm
from maia.cli.read.bundles import Signing
from maia.cli.read.options import principal_option
from maia.cli.show.output import note
from maia.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maia.authority import RightFinding, Root
    from maia.domain import Granted
    from maia.home import words


@dataclass(frozen=True, kw_only=True)
class Issuing(Signing):
    """As `Signing`, for a capability: who gives it to whom, and when it counts."""

    issuer: Annotated[str, principal_option("--from", help="Who gives; its private key signs.")]
    subject: Annotated[str, principal_option("--to", help="Who receives: a key, a name or a threshold.")]
    delegate: Annotated[bool, typer.Option("--delegate", help="The subject may pass the right on.")] = False
    not_before: options.NotBefore = None
    until: options.Until = None
    test: options.Tests = None
    irrevocable: Annotated[
        bool, typer.Option("--irrevocable", help="It obeys no list: nothing but its end ends it.")
    ] = False
    condition: Annotated[
        list[str] | None,
        typer.Option(
            "--condition", metavar="TEXT", help="Must hold whenever the right is used: an expression, or a rate."
        ),
    ] = None
    yes: options.Yes = False

    def issue(
        self, right: words.Right, *, renew: str | None = None, roots: tuple[Root, ...] = (), blanket: bool = False
    ) -> None:
        """Sign a right and keep it, and say what it gives and how long it counts at worst once it is revoked.

        Args:
            right: What is given.
            renew: Where the subject asks for a fresh certificate.
            roots: Who is trusted with what has no owner in its name.
            blanket: Issue it though the issuer holds less.

        Raises:
            DeniedError: The issuer cannot give it: ``ISSUER_LACKS_RIGHT``.
            UsageError: It obeys a test and is irrevocable: ``IRREVOCABLE_TEST``; nobody said that it is meant so:
                ``CONFIRMATION_MISSING``.
        """
        from maia.cli.read.signers import parse_period
        from maia.cli.show.issued import tell_issued
        from maia.cli.show.statements import describe_statement, told_words
        from maia.domain import draft_grant, sign_grant
        from maia.home import words

        folder, instant = self.folder, self.instant
        key = folder.key(self.issuer)
        if self.irrevocable and self.test:
            raise UsageError("what obeys a test is not irrevocable", code="IRREVOCABLE_TEST")
        tests = words.parse_tests(self.test, folder) if self.test or self.irrevocable else None
        draft = draft_grant(
            folder, key, right, to=words.parse_principal_text(self.subject, folder), at=instant,
            delegate=self.delegate, period=parse_period(self.not_before, self.until, at=instant), tests=tests,
            conditions=self.condition or (), renew=renew, roots=roots, blanket=blanket,
        )  # fmt: skip
        if draft.ends is not None:
            note(f"the issuer's own right ends at {draft.ends.isoformat()}; what it gives ends then at the latest")
        if draft.findings and not self.yes:
            _ask(draft.findings)
        done = sign_grant(folder, draft, self.signer(key), at=instant)
        warnings = [finding.code for finding in draft.findings]
        more: dict[str, object] = {"blanket": blanket, "warnings": warnings, "exposure": str(done.exposure)}
        tell_issued(done.certificate, done.file, self, more={**more, "repeated": done.repeated})
        note(f"gives {right.text}")
        note(_worst_case(done))
        if done.made is not None:
            note(f"signed for it: {describe_statement(done.made.body, folder)}; {told_words(done.made.told)}")
        for finding in draft.findings:
            note(f"warning: [{finding.code}] {finding.message}")


def _ask(findings: Sequence[RightFinding]) -> None:
    """Tell what the issuer should know, and go on only when somebody at the terminal says so.

    Raises:
        UsageError: Nobody said so, or nobody can be asked where it would bind nobody: ``CONFIRMATION_MISSING``.
    """
    from maia.authority import TRUSTED, UNENFORCEABLE

    if sys.stdin.isatty():
        for finding in findings:
            note(f"[{finding.code}] {finding.message}")
        confirm("issue it all the same?", otherwise="nothing was issued")
        return
    for finding in findings:
        # SECURITY: a right that binds nobody is never given in passing; the others are warnings.
        if finding.code in (UNENFORCEABLE, TRUSTED):
            raise UsageError(
                f"nothing was issued: {finding.message}; say `--yes` when it is meant so", code="CONFIRMATION_MISSING"
            )


def _worst_case(done: Granted) -> str:
    """Say how long a certificate counts after it is revoked, where it can be."""
    from maia.encoding import duration

    window = done.exposure.window
    if window is None and not done.certificate.body.tests:
        return f"it cannot be revoked: it has {done.exposure.bounded_by}"
    worst = "for ever" if window is None else f"for {duration(window)}"
    return f"if it is revoked now, it counts at worst {worst} ({done.exposure.bounded_by})"
