"""The array tools of the subscription index: arrays that grow, ragged gathers, and a batch's columns as codes."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from maia.events import AttributeType
from maia.filters.columns import validity
from maia.filters.values import Key

Integers: TypeAlias = npt.NDArray[np.int64]
Truths: TypeAlias = npt.NDArray[np.bool_]
_Scalar = TypeVar("_Scalar", bound=np.generic)

TEXT_TYPES = frozenset({AttributeType.STRING, AttributeType.DECIMAL})


class Growable(Generic[_Scalar]):
    """A numpy array that is appended to; room doubles, so appending is constant time on average."""

    __slots__ = ("_data", "_size")

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._data: npt.NDArray[_Scalar] = np.empty(16, dtype=dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, value: Any) -> None:  # noqa: ANN401 - whatever the dtype holds
        """Add one value at the end."""
        if self._size == len(self._data):
            grown = np.empty(2 * self._size, dtype=self._data.dtype)
            grown[: self._size] = self._data
            self._data = grown
        self._data[self._size] = value
        self._size += 1

    def __setitem__(self, position: int, value: Any) -> None:  # noqa: ANN401 - whatever the dtype holds
        self._data[position] = value

    @property
    def view(self) -> npt.NDArray[_Scalar]:
        """What was appended so far."""
        return self._data[: self._size]


def ragged(starts: Integers, counts: Integers) -> Integers:
    """The positions start, start + 1, … start + count - 1 of every run, one run after the other."""
    total = int(counts.sum())
    ends = np.cumsum(counts)
    places: Integers = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return places


class BatchColumn:
    """One column of a batch, as the index needs it: raw keys for arithmetic, codes of distinct keys for lookups."""

    def __init__(self, keys: pa.Array, kind: AttributeType) -> None:
        self.kind = kind
        self.keys = keys
        self.rows = len(keys)

    @cached_property
    def valid(self) -> Truths:
        """Which rows have a value."""
        return validity(self.keys)

    @cached_property
    def numbers(self) -> npt.NDArray[Any]:
        """The keys as numbers, zero where there is none; not for strings and decimals."""
        if self.keys.type == pa.bool_():
            return np.asarray(pc.fill_null(self.keys, False)).astype(np.int64)
        return np.asarray(pc.fill_null(self.keys, pa.scalar(0, self.keys.type)))

    @cached_property
    def _coded(self) -> tuple[list[Key], Integers]:
        if self.kind in TEXT_TYPES:
            coded = self.keys.dictionary_encode()
            codes = np.asarray(pc.fill_null(coded.indices, -1)).astype(np.int64)
            return coded.dictionary.to_pylist(), codes
        distinct, codes = np.unique(self.numbers, return_inverse=True)
        return distinct.tolist(), np.where(self.valid, codes, -1)

    @property
    def distinct(self) -> list[Key]:
        """The distinct keys of the batch."""
        return self._coded[0]

    @property
    def codes(self) -> Integers:
        """For each row the position of its key among the distinct ones, -1 where there is none."""
        return self._coded[1]

    @cached_property
    def code_of(self) -> dict[Key, int]:
        """The position of each distinct key."""
        return {key: code for code, key in enumerate(self.distinct)}
