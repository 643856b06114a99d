"""Screening: what a subscriber sees of an event that matched.

Rules (the paper's section 3.5 and formula (8), choices C27 and C33, threat T67):

1. Screening follows the rights filter, not the subscription.
2. The subscription's filter may read only attributes the rights name; otherwise a match would tell what is hidden.
3. An event that the subscription does not match, or that the rights do not cover, shows nothing at all.
4. Of what is shown, the result is the largest: every attribute that the rights name and the event has.
5. Mode `omit` leaves no trace of the rest; mode `null` keeps its names with null values.

Screening protects from subscribers without rights, not from relays or eavesdroppers; sealing does that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

from maia.errors import DeniedError
from maia.filters.evaluate import matches
from maia.filters.tree import TypedFilter


class ScreenMode(StrEnum):
    """What becomes of the attributes a subscriber may not see."""

    OMIT = "omit"
    NULL = "null"


def screen(
    rights: TypedFilter, filter_: TypedFilter, event: Mapping[str, object], *, mode: ScreenMode = ScreenMode.OMIT
) -> dict[str, object] | None:
    """Cut an event down to what the rights show of it: the largest screening of formula (8).

    >>> from maia.filters import compile_filter
    >>> types = {"message": "string", "price": "integer", "color": "string"}
    >>> rights = compile_filter("message any and price any", types)
    >>> wish = compile_filter("message = 'new_product' and price < 100", types)
    >>> screen(rights, wish, {"message": "new_product", "price": 23, "color": "red"})
    {'message': 'new_product', 'price': 23}

    Args:
        rights: The filter that says what the subscriber may see.
        filter_: The subscriber's own filter.
        event: The true values by attribute name.
        mode: Whether hidden attributes are left out or set to null.

    Returns:
        The screened event in the order of the original, or None when nothing is shown.

    Raises:
        DeniedError: The filter reads an attribute the rights do not name.
    """
    require_readable(filter_, rights.attributes)
    if not matches(filter_, event) or not matches(rights, event):
        return None
    visible = rights.attributes
    if mode is ScreenMode.NULL:
        return {name: value if name in visible else None for name, value in event.items()}
    return {name: value for name, value in event.items() if name in visible and value is not None}


def require_readable(filter_: TypedFilter, attributes: Collection[str]) -> None:
    """Refuse a filter that reads attributes its owner may not read, `any` included (rows 7.07, C34).

    >>> from maia.filters import compile_filter
    >>> require_readable(compile_filter("salary any", {"salary": "integer"}), {"name"})
    Traceback (most recent call last):
    maia.errors.DeniedError: [FILTER_NOT_AUTHORISED] the filter reads `salary`, which is closed to the subscriber

    Args:
        filter_: The subscriber's filter.
        attributes: The attributes open to the subscriber.

    Raises:
        DeniedError: The filter names another attribute. The message is the same whether or not any event matches.
    """
    closed = sorted(filter_.attributes.difference(attributes))
    if closed:
        raise DeniedError(
            f"the filter reads `{'`, `'.join(closed)}`, which is closed to the subscriber", code="FILTER_NOT_AUTHORISED"
        )
