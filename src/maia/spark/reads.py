"""What Spark's expressions read, found in the plan that Spark's own analysis makes of them.

Rules kept here:

- an expression reads every column that occurs anywhere in it, whatever it does with them;
- what runs code of its own (Python and Java functions), looks elsewhere (subqueries, files) or is not determined by
  what it reads is refused, and so is a plan that has more operators than the one that was asked for;
- nothing here runs a plan: an expression is judged before it sees a row.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pyspark.sql import DataFrame

from maia.errors import UsageError
from maia.spark.connect import refuse_connect

_MAX_NODES = 2_000
_OWN = "org.apache.spark.sql.catalyst.expressions."
_REFUSED = frozenset(
    [
        "PythonUDF",
        "PythonUDAF",
        "PythonUDTF",
        "ScalaUDF",
        "ScalarSubquery",
        "Exists",
        "ListQuery",
        "InSubquery",
        "LateralSubquery",
        "FunctionTableSubqueryArgumentExpression",
        "DynamicPruningSubquery",
        "OuterReference",
        "CallMethodViaReflection",
        "TryReflect",
        "RaiseError",
        "Invoke",
        "StaticInvoke",
        "NewInstance",
        "InitializeJavaBean",
        "InputFileName",
        "InputFileBlockStart",
        "InputFileBlockLength",
    ]
)


def columns_read(base: DataFrame, made: DataFrame, *steps: str) -> frozenset[str]:
    """Name the columns of a frame that another one, made from it by expressions, reads.

    Args:
        base: The frame.
        made: What was made from it by one operator.
        steps: What Spark may have made of the operator. SECURITY: an aggregate, a window or a list that hides in a
            plain expression looks at other rows, or changes how many there are; it has to be asked for by its name.

    Raises:
        UsageError: An expression does what no labelled frame can follow: ``EXPRESSION_REFUSED``.
    """
    below = _analysed(base)
    known = {output.exprId().id(): output.name() for output in _items(below.output())}
    found: set[str] = set()
    node, left = _analysed(made), _MAX_NODES
    while not node.equals(below):
        children = _items(node.children())
        kind = _kind(node)
        if kind not in steps or len(children) != 1 or left <= 0:
            raise _refused(kind)
        # What stands in no column below, such as Spark's own columns about files, is nothing that has a label.
        visible = _ids(children[0]) | (_ids(node) if kind == "Generate" else set())
        for expression in _items(node.expressions()):
            left = _walk(expression, known, found, visible, left)
        node = children[0]
    return frozenset(found)


def handed_on(base: DataFrame, made: DataFrame) -> str | None:
    """Name the column of a frame that a frame of one column hands on unchanged, if it does."""
    node = _analysed(made)
    expressions = _items(node.expressions())
    if _kind(node) != "Project" or len(expressions) != 1 or not _items(node.children())[0].equals(_analysed(base)):
        return None
    found = expressions[0]
    if _kind(found) == "Alias":
        found = found.child()
    return str(found.name()) if _kind(found) == "AttributeReference" else None


def require_no(names: Collection[str], hidden: Collection[str]) -> None:
    """Refuse an expression over columns that carry labels.

    Raises:
        UsageError: It reads one: ``NO_COLUMN``.
    """
    if wrong := sorted(set(names) & set(hidden)):
        raise UsageError(f"there is no column `{wrong[0]}`", code="NO_COLUMN")


def _walk(
    expression: Any,  # noqa: ANN401 - a Java object
    known: dict[int, str],
    found: set[str],
    visible: set[int],
    left: int,
) -> int:
    stack = [expression]
    while stack:
        item = stack.pop()
        left -= 1
        kind = _kind(item)
        if left < 0 or kind in _REFUSED or not str(item.getClass().getName()).startswith(_OWN):
            raise _refused(kind)
        if not item.deterministic():
            raise _refused(kind)
        if kind == "AttributeReference":
            identity = item.exprId().id()
            if identity not in visible:
                raise _refused(str(item.name()))
            if identity in known:
                found.add(known[identity])
        stack.extend(_items(item.children()))
    return left


def _analysed(frame: DataFrame) -> Any:  # noqa: ANN401 - a Java object
    refuse_connect(frame, "a labelled frame", "it needs Spark's own analysis; use a session of this process")
    return frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - the only way to Spark's own analysis


def _ids(node: Any) -> set[int]:  # noqa: ANN401 - a Java object
    return {output.exprId().id() for output in _items(node.output())}


def _kind(item: Any) -> str:  # noqa: ANN401 - a Java object
    return str(item.getClass().getSimpleName()).rstrip("$")


def _items(sequence: Any) -> list[Any]:  # noqa: ANN401 - a sequence of Scala's
    return [sequence.apply(index) for index in range(sequence.size())]


def _refused(kind: str) -> UsageError:
    return UsageError(
        f"a labelled frame cannot follow `{kind}`: use columns, literals and Spark's own functions of them",
        code="EXPRESSION_REFUSED",
    )
