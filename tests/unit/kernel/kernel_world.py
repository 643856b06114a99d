"""A type of eight attributes, one of each kind, and clauses made through real rights."""

from __future__ import annotations

import pyarrow as pa

from maia.authority import Action, Constraint, cell_rights, type_right
from maia.encryption import EpochId, KeyGroupId, Keyring
from maia.events import AttributeType, EventType, TypeName, Version, attribute, to_arrow_schema
from maia.kernel import Clause
from maia.principals import KeySigner

OWNER, BROKER, EVE = (KeySigner(bytes([n]) * 32) for n in (1, 2, 3))
NUMBERPLATE = EventType(
    name=TypeName(OWNER.public_key, "uk.gov.pito.Numberplate", Version("8516")),
    attributes=(
        attribute("numberplate", 3265, "string"), attribute("timestamp", 9058, "integer"),
        attribute("location", 3467, "string"),
    ),
)  # fmt: skip
EVERY_KIND = EventType(
    name=TypeName(OWNER.public_key, "t.Every", Version("1")),
    attributes=tuple(attribute(kind.value, n, kind) for n, kind in enumerate(AttributeType)),
)


def clause(*uids, action=Action.SUBSCRIBE, where=(), conditions=(), on_violation=None):
    """One clause over some uids (all when none is named) with constraints ``(uid, operator, value)``."""
    right = type_right(
        OWNER.public_key, actions=[action], attributes=uids or None,
        constraints=[Constraint(*demand) for demand in where], on_violation=on_violation,
    )  # fmt: skip
    [cells] = cell_rights(right)
    return Clause(cells, tuple(conditions), ())


def events(event_type=NUMBERPLATE, **columns):
    """A publisher's batch, columns by name."""
    schema = to_arrow_schema(event_type)
    arrays = [pa.array(values, type=schema.field(name).type) for name, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def full_ring(event_type=NUMBERPLATE, *epochs, only=None):
    """All keys of a type, or of some labels."""
    ring = Keyring()
    for label in (*(uid.encode() for uid in event_type.uids), b"*"):
        if only is None or label.decode() in only:
            for epoch in epochs or (0,):
                ring.add(KeyGroupId(event_type.type_id, label), EpochId(epoch), (label + b"%d" % epoch).rjust(32, b"k"))
    return ring
