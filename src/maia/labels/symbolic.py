"""Symbolic labels: the label of a whole column at once, with the flow tags that differ from row to row left open.

A `SymbolicLabel` is a static part and carriers. A `Carrier` says: the cell in each row also has the tag of this family
for the value that another column, the carrier, has in that row. So thousands of tags cost one column, which is there
anyway, and nothing until somebody asks.

Rules kept here:

- a carrier whose column is not known any more, or whose rows were mixed, stands for its whole family, or for all the
  values that it can have when those are known;
- a whole family flows only to where the whole family may go, or each of its values that can occur;
- integrity ``None`` is everything: the neutral element of joining, never what data has by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from maia.errors import EncodingError
from maia.labels.label import Label, tags_flow
from maia.labels.tag import check_tag, tag_of, values_by_family, whole_family


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """A family of flow tags, and what says which of them a cell has.

    Attributes:
        family: The family.
        column: The column whose value in the row is the tag's; ``None`` when it is some value, of whichever rows.
        values: The values that can occur, when that is known; others have no tag.
    """

    family: str
    column: str | None
    values: frozenset[str] | None = None

    def __post_init__(self) -> None:
        """Refuse a family that cannot be told from a tag with a value."""
        check_tag(self.family)
        if "(" in self.family or ")" in self.family:
            raise EncodingError(f"a family of flow tags has no parentheses: `{self.family}`", code="LABEL_TAGS")

    def tags(self) -> frozenset[str]:
        """Name the tags as a whole."""
        if self.values is None:
            return frozenset({whole_family(self.family)})
        return frozenset(tag_of(self.family, value) for value in self.values)

    def flows_to(self, secrecy: Collection[str]) -> bool:
        """Tell whether every tag that it can have is among those of a target."""
        return whole_family(self.family) in secrecy or (
            self.values is not None and all(tag in secrecy for tag in self.tags())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicLabel:
    """A static part, and carriers; by default what comes from nothing.

    >>> text = SymbolicLabel(integrity=frozenset({"pathlab"}), carriers=frozenset({
    ...     Carrier(family="clinical", column="patient")}))
    >>> text.shown()
    Label(secrecy=frozenset({'clinical(*)'}), integrity=frozenset({'pathlab'}))
    >>> sorted(text.at({"patient": "7"}).secrecy)
    ['clinical(7)']
    """

    secrecy: frozenset[str] = frozenset()
    integrity: frozenset[str] | None = None
    carriers: frozenset[Carrier] = frozenset()

    @classmethod
    def of(cls, label: Label, carriers: Iterable[Carrier] = ()) -> SymbolicLabel:
        """Make one of a label and carriers."""
        return cls(secrecy=label.secrecy, integrity=label.integrity, carriers=frozenset(carriers))

    def join(self, *others: SymbolicLabel) -> SymbolicLabel:
        """Label what is made from all of them."""
        secrecy, integrity, carriers = self.secrecy, self.integrity, self.carriers
        for other in others:
            secrecy, carriers = secrecy | other.secrecy, carriers | other.carriers
            if other.integrity is not None:
                integrity = other.integrity if integrity is None else integrity & other.integrity
        return SymbolicLabel(secrecy=secrecy, integrity=integrity, carriers=carriers)

    def within(self, columns: Collection[str] = (), gathered: Mapping[str, str] | None = None) -> SymbolicLabel:
        """Label rows taken together that agree on some columns: other carriers stand for all their values.

        Args:
            columns: On which the rows agree.
            gathered: For other carriers' columns, the column that holds the set of their values in these rows.
        """
        found = {name: name for name in columns} | dict(gathered or {})
        return self.renamed(found)

    def renamed(self, names: Mapping[str, str]) -> SymbolicLabel:
        """Follow carriers to the columns that hold their values now; those that are gone stand for all values."""
        kept = (replace(item, column=None if item.column is None else names.get(item.column)) for item in self.carriers)
        return replace(self, carriers=frozenset(kept))

    def without(self, tags: Collection[str]) -> SymbolicLabel:
        """Take flow tags out of the secrecy; a whole family takes its carriers with it."""
        carriers = set()
        for item in self.carriers:
            if whole_family(item.family) in tags:
                continue
            if item.values is None:
                carriers.add(item)
            elif left := frozenset(value for value in item.values if tag_of(item.family, value) not in tags):
                carriers.add(replace(item, values=left))
        return replace(self, secrecy=self.secrecy - frozenset(tags), carriers=frozenset(carriers))

    def endorsed(self, tags: Collection[str]) -> SymbolicLabel:
        """Put flow tags into the integrity."""
        return replace(self, integrity=None if self.integrity is None else self.integrity | frozenset(tags))

    def bounded(self, secrecy: Collection[str]) -> SymbolicLabel:
        """Label the cells that are left when those are hidden whose carriers may not flow to a target."""
        return self.bounded_by(values_by_family(secrecy))

    def bounded_by(self, families: Mapping[str, frozenset[str] | None]) -> SymbolicLabel:
        """Bound it by a target whose tags are sorted by family already; see `bounded`."""
        if not self.carriers:
            return self
        carriers = set()
        for item in self.carriers:
            values = families.get(item.family, frozenset())
            if values is not None:
                kept = values if item.values is None else values & item.values
                carriers.add(Carrier(family=item.family, column=item.column, values=kept))
            else:
                carriers.add(item)
        return SymbolicLabel(secrecy=self.secrecy, integrity=self.integrity, carriers=frozenset(carriers))

    def flows_to(self, target: Label) -> bool:
        """Tell whether whatever has this label may flow to a target, in every row."""
        return tags_flow(self.secrecy, self.integrity, target) and all(
            item.flows_to(target.secrecy) for item in self.carriers
        )

    def at(self, row: Mapping[str, str | Collection[str] | None]) -> Label:
        """Label the cell of one row; a carrier has a value there, or a set of values, or none and then no tag."""
        tags = set(self.secrecy)
        for item in self.carriers:
            found = None if item.column is None else row.get(item.column)
            if item.column is None:
                tags |= item.tags()
            else:
                values = () if found is None else (found,) if isinstance(found, str) else found
                tags |= {tag_of(item.family, value) for value in values if item.values is None or value in item.values}
        return Label(secrecy=frozenset(tags), integrity=self.integrity or frozenset())

    def shown(self, everything: frozenset[str] = frozenset()) -> Label:
        """Show it as a label: carriers as the tags that they stand for.

        Args:
            everything: What to show for the integrity of what comes from nothing.
        """
        tags = self.secrecy.union(*(item.tags() for item in self.carriers))
        return Label(secrecy=tags, integrity=everything if self.integrity is None else self.integrity)
