"""What readers make of the right of an origin that may have lied."""

from __future__ import annotations

import pyarrow as pa
import pytest
from kernel_world import BROKER, NUMBERPLATE, clause, events, full_ring

from maia.authority import Action
from maia.encryption import ParcelHeader, Tolerance, seal
from maia.errors import DeniedError
from maia.events import AttributeType, EncryptionMode, batch_to_transit, check_batch
from maia.kernel import Sealing, open_batch, seal_batch

PLATE, TIME, PLACE = "3265", "9058", "3467"
KINDS = {item.uid: item.type for item in NUMBERPLATE.attributes}
MODES = list(EncryptionMode)
TWO = {"numberplate": ["A", "B"], "timestamp": [1, 2], "location": ["Victoria", "Kent"]}


def right(*uids, where=(), conditions=()):
    """One clause of the origin's right to publish."""
    return clause(*uids, action=Action.PUBLISH, where=where, conditions=conditions)


VICTORIA = [(PLACE, "=", "Victoria")]


def seen(clauses, columns=None, *, mode=EncryptionMode.ATTRIBUTE, only=None, left_out=()):
    """Seal columns as a broker that enforces nothing, and open them as another domain's reader."""
    batch = batch_to_transit(NUMBERPLATE, check_batch(NUMBERPLATE, events(**(TWO if columns is None else columns))))
    batch = batch.select([name for name in batch.schema.names if name not in left_out])
    sealing = Sealing(type_id=NUMBERPLATE.type_id, mode=mode, evidence=bytes(32))
    parcel = seal_batch(batch, sealing, BROKER, full_ring(), stamp=5, parcel_id=bytes(16), event_base=bytes(16))
    return read(parcel, clauses, only=only)


def read(parcel, clauses, *, only=None):
    """Open a parcel whose origin has these clauses."""
    opened = open_batch(
        parcel.to_bytes(), KINDS, full_ring(NUMBERPLATE, 0, only=only), arrives=5, tolerance=Tolerance(),
        check_origin=lambda _: clauses,
    )  # fmt: skip
    return [tuple(row.values()) for row in opened.batch.to_pylist()]


def refused(*args, **more):
    """Say with which code a parcel is refused."""
    with pytest.raises(DeniedError) as caught:
        seen(*args, **more)
    return caught.value.code


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.threat("T69")
def test_one_row_outside_the_right_refuses_the_parcel(mode):
    """A11: a broker that may publish at Victoria only, and says Kent, is not believed in anything it says there."""
    assert refused([right(where=VICTORIA)], mode=mode) == "ORIGIN_BROKE_RIGHT"
    inside = TWO | {"location": ["Victoria", "Victoria"]}
    assert seen([right(where=VICTORIA)], inside, mode=mode) == [("A", 1, "Victoria"), ("B", 2, "Victoria")]
    assert seen([right(where=VICTORIA), right()], mode=mode) == [("A", 1, "Victoria"), ("B", 2, "Kent")]
    assert refused([], mode=mode) == "ORIGIN_BROKE_RIGHT"


@pytest.mark.parametrize("mode", MODES)
def test_clauses_are_never_mixed(mode):
    """All at Victoria and times elsewhere: what was set of the plate in Kent becomes null."""
    assert seen([right(where=VICTORIA), right(TIME)], mode=mode) == [("A", 1, "Victoria"), (None, 2, None)]


@pytest.mark.parametrize("mode", MODES)
def test_a_null_and_what_is_left_out_meet_no_demand(mode):
    """Who may speak for Victoria alone cannot speak for nowhere, by a null or by leaving the attribute out."""
    assert refused([right(where=VICTORIA)], TWO | {"location": [None, "Victoria"]}, mode=mode) == "ORIGIN_BROKE_RIGHT"
    assert refused([right(where=VICTORIA)], mode=mode, left_out=[PLACE]) == "ORIGIN_BROKE_RIGHT"


def test_what_is_closed_here_does_not_count_against_the_origin():
    """Without the key of places a reader cannot judge them; what it can open it gets, as from an honest origin."""
    assert seen([right(where=VICTORIA)], only={TIME}) == [(None, 1, None), (None, 2, None)]
    both = [(PLACE, "=", "Victoria"), (TIME, "<", 2)]
    with pytest.raises(DeniedError):
        seen([right(where=both)], only={TIME})
    assert seen([right(where=VICTORIA)], mode=EncryptionMode.EVENT, only={TIME}) == [(None, None, None)] * 2


def test_a_forced_value_is_kept_though_the_origin_may_not_set_the_attribute():
    """The value is the issuer's word; another demand on a closed attribute sets nothing."""
    inside = TWO | {"location": ["Victoria", "Victoria"]}
    assert seen([right(PLATE, where=VICTORIA)], inside) == [("A", None, "Victoria"), ("B", None, "Victoria")]
    assert seen([right(PLATE, where=[(TIME, ">", 0)])]) == [("A", None, None), ("B", None, None)]


def test_conditions_are_not_asked_again():
    """They were asked where the origin published, at that moment (C43)."""
    assert seen([right(conditions=["now.hour('Europe/London') < 0"])])[0] == ("A", 1, "Victoria")


def test_labels_that_are_no_text_are_nobodys():
    """An origin may write any octets as labels; such columns are left out, whatever they look like as text."""
    columns = {label: (AttributeType.STRING, pa.array(["x"])) for label in (b"3265", b"\xfe", b"\xff")}
    header = ParcelHeader(
        type_id=NUMBERPLATE.type_id, origin=BROKER.public_key.key_id, parcel_id=bytes(16), event_base=bytes(16),
        stamp=5, count=1, epoch=0, mode=EncryptionMode.PLAIN, evidence=bytes(32), labels=tuple(columns),
    )  # fmt: skip
    assert read(seal(columns, header, BROKER, lambda _: None), [right()]) == [("x", None, None)]
