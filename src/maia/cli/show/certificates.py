"""One certificate for people, as a tree, and for machines, as an object."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from maia.authority import StatementBook, exposure_window
from maia.cli.read.instants import show_instant
from maia.cli.show.output import printable
from maia.cli.show.principals import subject_to_json
from maia.encoding import format_advanced
from maia.errors import SignatureError
from maia.home import Folder, words
from maia.principals import (
    Authorisation,
    Certificate,
    Naming,
    OnlineTest,
    Period,
    UnverifiedCertificate,
    verify_certificate,
)

if TYPE_CHECKING:
    from rich.tree import Tree


def is_genuine(certificate: UnverifiedCertificate) -> bool:
    """Tell whether the issuer signed it."""
    try:
        verify_certificate(certificate)
    except SignatureError:
        return False
    return True


def period_text(period: Period) -> str:
    """Say when something is valid."""
    start, end = show_instant(period.not_before), show_instant(period.not_after)
    if start and end:
        return f"{start} to {end}"
    return f"from {start}" if start else f"until {end}" if end else "always"


def period_to_json(period: Period) -> dict[str, str | None]:
    """Give both ends for machines."""
    return {"not_before": show_instant(period.not_before), "not_after": show_instant(period.not_after)}


def state_text(period: Period, at: datetime) -> str:
    """Say whether a period contains an instant."""
    if period.contains(at):
        return "valid"
    return "expired" if period.not_after is not None and at > period.not_after else "not valid yet"


def certificate_tree(certificate: UnverifiedCertificate, home: Folder, *, at: datetime, book: StatementBook) -> Tree:
    """Draw a certificate."""
    from rich.text import Text
    from rich.tree import Tree

    body = certificate.body
    genuine = is_genuine(certificate)
    kind = "capability" if isinstance(body, Authorisation) else "name"
    head = Text().append(f"{kind} ", style="bold")
    head.append(certificate.certificate_id.hex()[:16], style="bold cyan")
    head.append(
        "  signature verifies" if genuine else "  SIGNATURE DOES NOT VERIFY", style="green" if genuine else "red"
    )
    tree = Tree(head)

    def add(label: str, value: str, style: str = "") -> None:
        tree.add(Text().append(f"{label:<9}", style="dim").append(printable(value), style=style))

    if isinstance(body, Authorisation):
        add("issuer", words.show_subject(body.issuer, home))
        add("subject", words.show_subject(body.subject, home))
        add("grants", words.describe_tag(body.tag, home, uids=True), "yellow")
        add("delegate", "yes" if body.delegate else "no")
        for condition in body.conditions:
            add("if", condition)
    else:
        add("name", f"{words.show_subject(body.issuer, home)}: {body.name}", "yellow")
        add("means", words.show_subject(body.subject, home))
    state = state_text(body.period, at)
    add("valid", f"{period_text(body.period)} ({state})", "green" if state == "valid" else "red")
    for test in body.tests:
        add("test", test_text(test, home))
    if isinstance(body, Authorisation) and body.renew:
        add("renew", body.renew)
    add("exposure", str(exposure_window(certificate, at=at, statements=book)))
    return tree


def test_text(test: OnlineTest, home: Folder) -> str:
    """Say which statement a certificate demands."""
    where = f" at {', '.join(test.uris)}" if test.uris else ""
    return f"{test.kind.value} by {home.show(test.signer.key_id)}{where}"


def certificate_to_json(certificate: UnverifiedCertificate | Certificate, home: Folder) -> dict[str, object]:
    """Give a certificate for machines; what is signed is in ``sexp``."""
    body = certificate.body
    data: dict[str, object] = {
        "id": certificate.certificate_id.hex(),
        "issuer": subject_to_json(body.issuer),
        "subject": subject_to_json(body.subject),
        "valid": period_to_json(body.period),
        "tests": [
            {"kind": test.kind.value, "signer": subject_to_json(test.signer), "uris": list(test.uris)}
            for test in body.tests
        ],
        "sexp": format_advanced(body.to_sexp()),
    }
    if isinstance(body, Naming):
        return {"kind": "name", **data, "name": body.name}
    right = words.views(body.tag, home)
    return {
        "kind": "capability",
        **data,
        "delegate": body.delegate,
        "tag": format_advanced(body.tag),
        "grants": words.describe_tag(body.tag, home),
        "rights": None if right is None else [view.to_json() for view in right],
        "conditions": list(body.conditions),
        "renew": body.renew,
    }
