"""From what a client reads of a type to a labelled frame."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from maia.domain import Client, Domain, FrameLabels, labels_of_type, read_label_policy
from maia.events import EventType
from maia.filters import compile_filter
from maia.labels import PUBLIC, FlowChecks, Label, RelationLabel, SymbolicLabel, where
from maia.spark.carriers import fresh_carrier
from maia.spark.exits import column_of
from maia.spark.holder import Holder
from maia.spark.labelled import LabelledFrame


def label_frame(
    frame: DataFrame, client: Client, domain: Domain, source: EventType, labels: FrameLabels, *, filter_text: str = ""
) -> LabelledFrame:
    """Label what a client read of a type: only columns of which something may flow to its frames are there.

    Args:
        frame: What it read.
        client: The client.
        domain: Whose client it is.
        source: The version that it sees.
        labels: By what the frame is labelled.
        filter_text: The filter by which it read.

    Raises:
        UncheckedError: The label policy changed meanwhile: ``LABEL_POLICY_CHANGED``.
    """
    policy = read_label_policy(domain.home, labels, at=domain.clock())
    reader = Label(secrecy=labels.tags, integrity=policy.reader(client.name).label.integrity)
    found = labels_of_type(domain.home, policy, domain.known(at=domain.clock()), source)
    said = dict.fromkeys(frame.columns, SymbolicLabel.of(PUBLIC)) if found is None else found.columns
    checks = FlowChecks(reader)
    kept = {name: part for name in frame.columns if (part := checks.open_part(said[name])) is not None}
    # A carrier that the client cannot see in every row stands for all values that may flow to it.
    sure = {name for name, label in kept.items() if not label.carriers}
    carriers = sorted({str(item.column) for label in kept.values() for item in label.carriers} & sure)
    hidden = {name: fresh_carrier() for name in carriers}
    columns = {name: label.renamed(hidden) for name, label in kept.items()}
    columns |= {new: kept[name] for name, new in hidden.items()}
    value = {new: F.array(F.coalesce(column_of(name).cast("string"), F.lit(""))) for name, new in hidden.items()}
    made = frame.select(*map(column_of, kept), *(column.alias(new) for new, column in value.items()))
    # SECURITY: which rows are there tells of what the filter read, as with a condition on the frame.
    filter_ = compile_filter(filter_text, {item.name: item.type.value for item in source.attributes})
    label = where(RelationLabel(columns=columns), filter_.attributes)
    return LabelledFrame(made, label, Holder(domain, client, policy, source.name))
