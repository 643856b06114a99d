"""Access-control filters, as Zoltán Miklós describes them: the examples of his paper, played at a shop's broker.

Credentials become roles, roles become rights with bounds, and the broker holds publishers and subscribers to them:
publications and advertisements when they are published, subscriptions before they are remembered, and what is
delivered is screened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import maia
from maia.demo.typed import Organisation
from maia.demo.views import SceneView, refused, seen
from maia.errors import MaiaError, RowsRefusedError
from maia.events import to_arrow_schema
from maia.spark import spark_errors, start_spark

if TYPE_CHECKING:
    from maia.domain import Domain

TYPE = "shop.Product"
ATTRIBUTES = ("message:string", "price:integer", "color:string", "weather:string", "temperature:integer")
PRODUCT = "message = 'new_product'"
CHEAP = f"{PRODUCT} and price < 100"
RIGHTS: Mapping[str, str] = {
    "acme": f"publish Product upper ({PRODUCT})",
    "bolt": f"publish Product lower ({PRODUCT}, price < 100)",
    "cord": f"publish Product strict-lower ({PRODUCT}, price < 100)",
    "rita": f"subscribe Product upper ({PRODUCT})",
    "lars": "subscribe Product lower (message any)",
    "sue": "subscribe Product(message any, price any) strict-upper (message any, price any)",
    "auditor": "subscribe Product",
}
"""What the credential of each member gives: suppliers, readers with a bound, and an auditor without one."""
_SUNNY: Mapping[str, Any] = {"weather": "sunny", "temperature": 27}
_BLUE: Mapping[str, Any] = {"message": "new_product", "price": 10, "color": "blue"}
PUBLICATIONS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("acme", {"message": "new_product", "price": 10}),
    ("acme", _SUNNY),
    ("bolt", _BLUE),
    ("bolt", _SUNNY),
    ("bolt", {"message": "new_product", "price": 523}),
    ("cord", _BLUE),
    ("cord", {"message": "new_product", "price": 10}),
)
ADVERTISEMENTS = (
    ("acme", CHEAP),
    ("acme", "weather any and temperature any"),
    ("bolt", f"{PRODUCT} and price < 53"),
    ("bolt", f"{PRODUCT} and color any"),
)
SUBSCRIPTIONS = (
    ("rita", f"{PRODUCT} and price = 10"),
    ("rita", "weather = 'sunny' and temperature > 25"),
    ("lars", PRODUCT),
    ("lars", CHEAP),
    ("sue", CHEAP),
    ("sue", ""),
)
OFFER: Mapping[str, Any] = {"message": "new_product", "price": 23, "color": "red"}
ALLOWED = "allowed"
_KINDS = ("upper", "lower", "strict-upper", "strict-lower")
Say = Callable[[str], None]


@dataclass(slots=True)
class MiklosFacts:
    """What happened, for people and for machines.

    Attributes:
        commands: What was typed.
        publications: Who published what, and the answer: `allowed`, or the code of the refusal.
        advertisements: The same of what was announced.
        subscriptions: The same of what was asked for.
        screened: What each reader was shown of one event, with no trace of the rest.
    """

    commands: list[str] = field(default_factory=list)
    publications: list[tuple[str, str, str]] = field(default_factory=list)
    advertisements: list[tuple[str, str, str]] = field(default_factory=list)
    subscriptions: list[tuple[str, str, str]] = field(default_factory=list)
    screened: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def views(self) -> list[SceneView]:
        """Show every example with its answer, and one event as two readers see it."""
        found = [
            SceneView(
                title=title, columns=("bound", what, "answer"), wide=True,
                rows=tuple((_bound(who), text or "everything", _answer(code)) for who, text, code in answers),
            )
            for title, what, answers in (
                ("what suppliers publish", "publication", self.publications),
                ("what they announce", "advertisement", self.advertisements),
                ("what readers ask for", "subscription", self.subscriptions),
            )
        ]  # fmt: skip
        titles = {"auditor": "the event, as the auditor sees it", "sue": "as Sue sees it: screened, without a trace"}
        for who, rows in self.screened.items():
            found.append(seen(titles[who], tuple(dict.fromkeys(name for row in rows for name in row)), rows))
        return found

    def to_json(self) -> dict[str, object]:
        """Give it for machines."""
        kinds = {
            "publications": self.publications, "advertisements": self.advertisements,
            "subscriptions": self.subscriptions,
        }  # fmt: skip
        answers = {
            kind: [{"who": who, "asked": asked, "answer": answer} for who, asked, answer in rows]
            for kind, rows in kinds.items()
        }
        return {"commands": self.commands, "rights": dict(RIGHTS), **answers, "screened": self.screened}


def miklos_policy() -> str:
    """Write the shop's policy: one role a credential.

    >>> print(miklos_policy().splitlines()[1])
    acme(self) |- publish Product upper (message = 'new_product')
    """
    return "".join(
        f"{who}(self) <- credential(self, '{who}')*\n{who}(self) |- {gives}\n" for who, gives in RIGHTS.items()
    )


def play_miklos(folder: Path, *, say: Say) -> MiklosFacts:
    """Play the scenario in a folder.

    Args:
        folder: An empty folder; the shop's home goes there.
        say: Tells the person at the terminal what is going on.
    """
    facts = MiklosFacts()
    shop = Organisation(folder, "shop", told=facts.commands, say=say)
    _open_shop(shop)
    say("starting Spark")
    start_spark(octets=0)
    domain = maia.open(shop.home)
    say("suppliers publish, and announce what they will publish")
    for who, row in PUBLICATIONS:
        facts.publications.append((who, _text(row), _publish(domain, who, row)))
    for who, announced in ADVERTISEMENTS:
        answer = _publish(domain, who, {"message": "new_product", "price": 12}, advertise=announced)
        facts.advertisements.append((who, announced, answer))
    say("readers subscribe")
    for number, (who, asked) in enumerate(SUBSCRIPTIONS):
        facts.subscriptions.append((who, asked, _subscribe(shop, f"s{number}", who, asked)))
    say("one event, two views")
    _publish(domain, "acme", OFFER, advertise=f"{PRODUCT} and price any and color any")
    for who in ("auditor", "sue"):
        with spark_errors():
            rows = domain.client(who).read(TYPE, where=f"{CHEAP} and price > 20").collect()
        facts.screened[who] = [{name: cell for name, cell in row.asDict().items() if cell is not None} for row in rows]
    return facts


def _open_shop(shop: Organisation) -> None:
    fields = [word for text in ATTRIBUTES for word in ("--attribute", text)]
    shop.do("domain", "init", str(shop.home), "--key")
    shop.do("type", "define", f"domain/{TYPE}@1", *fields, "--closed", "omit")
    for action in ("publish", "subscribe"):
        shop.do("grant", "--from", "domain", "--to", "broker", "--type", f"domain/{TYPE}", "--action", action, "--yes")
    shop.write("policy/shop.rules", miklos_policy())
    shop.do("policy", "apply")
    for who in RIGHTS:
        shop.join(who, f"credential({who}, {who})")
        shop.do("role", "activate", f"{who}({who})", "--as", who)


def _publish(domain: Domain, who: str, row: Mapping[str, Any], *, advertise: str | None = None) -> str:
    """Publish one row as a supplier, by the broker's leave."""
    import pyarrow as pa

    table = pa.Table.from_pylist([dict(row)], schema=to_arrow_schema(domain.event_type(TYPE)))
    try:
        with spark_errors():
            domain.client(who).publish(table, TYPE, advertise=advertise)
    except RowsRefusedError as error:
        return str(next(code for code, _ in error.published.refused))
    except MaiaError as error:
        return error.code
    return ALLOWED


def _subscribe(shop: Organisation, name: str, who: str, asked: str) -> str:
    """Ask the broker to remember a subscription."""
    words = ("deliver", "add", name, "--as", who, "--type", TYPE, *(("--where", asked) if asked else ()))
    return shop.attempt(*words) or ALLOWED


def _text(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.items())


def _bound(who: str) -> str:
    """Say the bound of a right: all from its kind on."""
    words = RIGHTS[who].split()
    return " ".join(words[next(place for place, word in enumerate(words) if word in _KINDS) :])


def _answer(code: str) -> str:
    return code if code == ALLOWED else refused(code)
