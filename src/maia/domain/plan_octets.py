"""Plans as octets, for orders: as Spark would carry them, read back with nothing but values.

Rules kept here:

- octets are read only after the signature over them was checked (`orders`);
- even then nothing comes out but values: frozen data classes and enumerations of the floors below, keys, instants,
  numbers. A name of anything else, a function above all, is refused (``WORK_SHAPE``);
- nothing is called but these classes, and nothing is changed but what was made here: neither a class nor a member of an
  enumeration, which the rest of the process shares.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import is_dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, ClassVar

from maia.errors import EncodingError
from maia.kernel import DeliverPlan, PublishPlan
from maia.principals import PublicKey

_FLOORS = ("authority", "encryption", "events", "filters", "kernel", "labels", "policy", "principals")
_OF_ORDERS = "maia.domain.orders.ClockOnly"
_PLAIN = {
    f"{kind.__module__}.{kind.__qualname__}": kind
    for kind in (datetime, timedelta, timezone, Decimal, frozenset, set, PublicKey)
}


def write_plan(plan: DeliverPlan | PublishPlan) -> bytes:
    """Write a plan."""
    return pickle.dumps(plan)


def read_plan(data: bytes) -> DeliverPlan | PublishPlan:
    """Read a plan, whose origin was proven before.

    Raises:
        EncodingError: It is none, or has something in it that is no value: ``WORK_SHAPE``.

    >>> read_plan(pickle.dumps(print))
    Traceback (most recent call last):
    ...
    maia.errors.EncodingError: [WORK_SHAPE] a plan has `builtins.print` in it, which is no value
    """
    try:
        plan = _Values(io.BytesIO(data)).load()
    except EncodingError:
        raise
    except Exception as error:
        raise EncodingError("not a plan", code="WORK_SHAPE") from error
    if not isinstance(plan, DeliverPlan | PublishPlan):
        raise EncodingError("not a plan", code="WORK_SHAPE")
    return plan


def _refused(said: str) -> EncodingError:
    return EncodingError(f"a plan has `{said}` in it, which is no value", code="WORK_SHAPE")


class _Values(pickle._Unpickler):  # noqa: SLF001 - the public one is in C, and has no steps that can be looked at
    """Reads values alone."""

    dispatch: ClassVar[dict[int, Callable[[Any], None]]]
    stack: list[Any]
    metastack: list[list[Any]]

    def find_class(self, module: str, name: str) -> object:
        """Give a class of values.

        Raises:
            EncodingError: It is something else.
        """
        said = f"{module}.{name}"
        if said in _PLAIN:
            return _PLAIN[said]
        if (said == _OF_ORDERS or _on_floor(module)) and "." not in name:
            found = super().find_class(module, name)
            # SECURITY: a class that a module only imported is judged by where it is from.
            if (
                isinstance(found, type)
                and found.__module__ == module
                and (_is_frozen(found) or issubclass(found, Enum))
            ):
                return found
        # SECURITY: whatever else a name stands for could be called here.
        raise _refused(said)

    def check_called(self, called: object) -> None:
        """Refuse to call what is no class of values.

        Raises:
            EncodingError: It is not.
        """
        if not isinstance(called, type):
            raise _refused(f"a call of {type(called).__name__}")

    def check_changed(self, changed: object, kinds: tuple[type, ...] = ()) -> None:
        """Refuse to change what is neither of these kinds nor, without any, a value that was made here.

        Raises:
            EncodingError: It is not.
        """
        # SECURITY: a class, or a member of an enumeration, is the same for the whole process.
        if type(changed) not in kinds if kinds else isinstance(changed, type) or not _is_frozen(type(changed)):
            raise _refused(f"a change of {type(changed).__name__}")


def _on_floor(module: str) -> bool:
    root, _, rest = module.partition(".")
    return root == "maia" and rest.split(".")[0] in _FLOORS


def _is_frozen(kind: type) -> bool:
    return is_dataclass(kind) and bool(kind.__dataclass_params__.frozen) and not issubclass(kind, Enum)  # type: ignore[attr-defined]


def _steps() -> dict[int, Callable[[Any], None]]:
    """Give the steps of reading: those that call or change something look first, those of old forms are gone."""
    known: dict[int, Callable[[Any], None]] = dict(pickle._Unpickler.dispatch)  # noqa: SLF001 - see above
    steps = dict(known)

    def looked(code: bytes, look: Callable[[_Values], None]) -> None:
        step = known[code[0]]

        def both(reader: _Values) -> None:
            look(reader)
            step(reader)

        steps[code[0]] = both

    for code in (b"i", b"o", b"P", b"Q", b"\x82", b"\x83", b"\x84"):  # INST, OBJ, persistent names, extensions
        del steps[code[0]]
    looked(b"R", lambda reader: reader.check_called(reader.stack[-2]))
    looked(b"\x81", lambda reader: reader.check_called(reader.stack[-2]))
    looked(b"\x92", lambda reader: reader.check_called(reader.stack[-3]))
    looked(b"b", lambda reader: reader.check_changed(reader.stack[-2]))
    looked(b"a", lambda reader: reader.check_changed(reader.stack[-2], (list,)))
    looked(b"s", lambda reader: reader.check_changed(reader.stack[-3], (dict,)))
    looked(b"e", lambda reader: reader.check_changed(reader.metastack[-1][-1], (list,)))
    looked(b"u", lambda reader: reader.check_changed(reader.metastack[-1][-1], (dict,)))
    looked(b"\x90", lambda reader: reader.check_changed(reader.metastack[-1][-1], (set,)))
    return steps


_Values.dispatch = _steps()
