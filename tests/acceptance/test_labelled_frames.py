"""Labelled frames: what a client reads keeps its labels through every operator, and every exit is checked."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pathology_world import COMMENT, COUNT, PARTS, PATTERSON, REPORT, ROWS, SMITH, define, hospital, publish_reports
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

import maia
from maia.errors import DeniedError, FlowError, MaiaError, UnavailableError, UsageError
from maia.labels import PUBLIC
from maia.testing import Command, read_here

_OPENED: dict[Path, Any] = {}
_READ: dict[str, Any] = {}
CLINICAL = frozenset({f"clinical({PATTERSON})"})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Build the hospital once."""
    return hospital(tmp_path_factory.mktemp("labels") / "hospital")


@pytest.fixture
def domain(spark: Any, made: Command) -> Any:
    """Open the hospital with its reports published, once."""
    if made.home not in _OPENED:
        publish_reports(made)
        _OPENED[made.home] = maia.open(made.home)
    return _OPENED[made.home]


def reports(domain: Any, client: str) -> Any:
    """Give the labelled reports of a client, read once."""
    if client not in _READ:
        _READ[client] = domain.client(client).labelled(REPORT)
    return _READ[client]


def audited(domain: Any, code: str) -> list[tuple[str, str]]:
    """Give who did what, of one code, from the audit."""
    rows = domain.audit().where(F.col("code") == code).select("subject", "source").collect()
    return [(row[0], row[1]) for row in rows]


# path-report-text and SNOMED-CT-codes only of the rows whose patient flows to the reader
MATRIX = {
    "ali": (PARTS, {PATTERSON}),
    "both": (PARTS, {PATTERSON, SMITH}),
    "chen": (tuple(PARTS[2:]), {row[0] for row in ROWS}),
    "strict": (tuple(PARTS[3:]), {row[0] for row in ROWS}),
    "nobody": (tuple(PARTS[2:5]), set()),
}


@pytest.mark.requirement("17.04")
@pytest.mark.requirement("22.19")
@pytest.mark.parametrize("client", MATRIX)
def test_a_reader_sees_the_parts_that_flow_to_it_and_no_trace_of_others(domain: Any, client: str) -> None:
    """Of seven parts a reader without tags sees three; clinical parts show for patients whose tag it holds."""
    columns, patients = MATRIX[client]
    frame = reports(domain, client)
    assert tuple(frame.columns) == columns
    found = {row["lab-number"]: row for row in frame.collect()}
    plain = {row["lab-number"]: row for row in read_here(domain.home, REPORT, as_=client)}
    for values in ROWS:
        expected = dict(zip(PARTS, values, strict=True))
        mine = values[0] in patients
        shown = {
            name: expected[name] if name in columns and (mine or name not in PARTS[5:]) else None for name in PARTS
        }
        assert {name: found[values[3]][name] for name in columns} == {name: shown[name] for name in columns}
        assert plain[values[3]] == shown, "a plain read is closed by the same clauses"


def test_a_filter_over_what_may_not_flow_is_refused(domain: Any) -> None:
    """As a filter over what no right opens; and a policy that is wrong opens nothing."""
    with pytest.raises(DeniedError, match="FILTER_NOT_AUTHORISED"):
        domain.client("nobody").read(REPORT, where="patient-name = 'Jane Smith'")
    assert read_here(domain.home, REPORT, as_="ali", where=f"patient-ID = '{SMITH}'")[0]["path-report-text"] is None


@pytest.mark.requirement("17.07")
@pytest.mark.threat("T71")
def test_a_filter_taints_as_a_condition_on_the_frame_does(domain: Any) -> None:
    """The monitor's frames may hold codes: what it read by one of them, and how many, does not leave."""
    monitor = domain.client("monitor")
    asked = monitor.labelled(REPORT, where="SNOMED-CT-codes = '302512001'").select("lab-number")
    kept = reports(domain, "monitor").where("`SNOMED-CT-codes` = '302512001'").select("lab-number")
    assert asked.labels == kept.labels
    for secret in (asked, asked.groupBy().agg(n=F.count(F.lit(1)))):
        with pytest.raises(FlowError):
            secret.collect()
    public = monitor.labelled(REPORT, where="hospital-ID = 'RGT02'").select("lab-number")
    assert [row[0] for row in public.collect()] == ["A10/21369"]


@pytest.mark.requirement("17.07")
@pytest.mark.requirement("22.19")
@pytest.mark.threat("T71")
def test_nothing_secret_leaves_by_file_republication_or_in_disguise(domain: Any, tmp_path: Path) -> None:
    """Saved to a file, republished as public, encrypted, by a condition, counted: blocked, and told to the audit."""
    frame = reports(domain, "ali")
    text = F.col("`path-report-text`")
    disguised = frame.withColumn("comment", F.base64(F.aes_encrypt(text, F.lit("0123456789abcdef"))))
    implied = frame.where(text.contains("tumour")).select("lab-number")
    counted = frame.where(text.contains("tumour")).groupBy("hospital-ID").agg(count=F.count(F.lit(1)))
    for leak in (frame.select("path-report-text"), disguised.select("comment"), implied, counted):
        with pytest.raises(FlowError, match="may not flow"):
            leak.write(tmp_path / "leak")
    with pytest.raises(FlowError, match="`count` may not flow"):
        counted.publish(COUNT)
    for public in (
        frame.select(text.alias("SNOMED-CT-codes")),
        disguised.select(F.col("comment").alias("hospital-ID")),
    ):
        with pytest.raises(FlowError, match="may not flow"):
            public.publish(COUNT)
    assert not (tmp_path / "leak").exists()
    assert ("ali", f"publish {COUNT}") in audited(domain, "FLOW")
    with pytest.raises(FlowError):
        frame.select("path-report-text").write(tmp_path / "ward" / ".." / "leak")
    with pytest.raises(UsageError, match="FILE_FORMAT"):
        frame.select("hospital-ID").write(tmp_path / "leak", format="jdbc")
    frame.select("hospital-ID", "lab-number").write(tmp_path / "public")
    assert (tmp_path / "public").is_dir(), "what is public is written"


@pytest.mark.requirement("17.07")
@pytest.mark.threat("T71")
def test_a_labelled_frame_has_no_way_out_but_those_that_are_checked(domain: Any) -> None:
    """Of all that a frame of Spark's can do, it has operators and exits: no view, stream, function, RDD or socket."""
    mine = {name for name in dir(reports(domain, "ali")) if not name.startswith("_")}
    exits = {"collect", "show", "toPandas", "write", "publish", "unsafe_frame"}  # the last warns, and the audit tells
    operators = {
        "columns", "labels", "select", "drop", "withColumn", "withColumnRenamed", "where", "join", "union", "groupBy",
        "window", "explode", "limit", "through",
    }  # fmt: skip
    assert mine <= exits | operators, mine
    ways = """rdd foreach foreachPartition toLocalIterator toJSON createOrReplaceTempView createGlobalTempView writeTo
              writeStream mapInArrow mapInPandas checkpoint localCheckpoint observe sparkSession"""
    for way in ways.split():
        assert hasattr(DataFrame, way), "a way out of Spark's own frames"
        with pytest.raises(AttributeError):
            getattr(reports(domain, "ali"), way)


def test_reading_a_secret_does_not_taint_the_next_event(domain: Any, tmp_path: Path) -> None:
    """After a report was read, the same client still writes public output of the next."""
    ali = domain.client("ali")
    assert ali.labelled(REPORT).select("path-report-text").collect()
    ali.labelled(REPORT).select("lab-number").write(tmp_path / "next")
    assert (tmp_path / "next").is_dir()


@pytest.mark.requirement("17.06")
def test_parts_that_are_handed_on_keep_their_labels(domain: Any) -> None:
    """An untouched part stays ({}, {pathlab}), under another name too; what is computed is nobody's word."""
    frame = reports(domain, "ali")
    kept = frame.select(F.col("`lab-number`").alias("number"), F.upper("`lab-number`").alias("upper"))
    assert kept.labels["number"].secrecy == frozenset()
    assert kept.labels["number"].integrity == frozenset({"pathlab"})
    assert kept.labels["upper"].integrity == frozenset()
    both = frame.select("hospital-ID", F.concat("`lab-number`", "`path-report-text`").alias("made"))
    assert both.labels["hospital-ID"] == PUBLIC
    assert both.labels["made"].secrecy == CLINICAL


@pytest.mark.requirement("17.14")
def test_two_patients_together_are_for_whoever_may_see_both(domain: Any) -> None:
    """Joined or put together, the result has both tags; a sink that takes one of them takes neither."""
    frame = reports(domain, "both").select("hospital-ID", "path-report-text")
    other = frame.withColumnRenamed("path-report-text", "other")
    joined = frame.join(other, "hospital-ID")
    assert joined.labels["other"].secrecy == CLINICAL | {f"clinical({SMITH})"}
    assert len(joined.collect()) == 5
    with pytest.raises(FlowError):
        joined.select(F.col("other").alias("comment")).publish(COMMENT)


def test_operators_give_what_spark_gives(domain: Any) -> None:
    """Select, where, join of each kind, union, group, window, explode and limit run as in Spark, with labels beside."""
    frame = reports(domain, "chen")
    codes = frame.groupBy("hospital-ID").agg(n=F.count(F.lit(1)), first=F.min("`SNOMED-CT-codes`"))
    assert sorted(map(tuple, codes.collect())) == [("RGT01", 2, "302512001"), ("RGT02", 1, "302512001")]
    assert codes.labels["n"] == PUBLIC, "how many rows there are is public"
    assert codes.labels["first"].secrecy == {"clinical(*)"}
    numbered = frame.window("rank", F.row_number(), partition=["hospital-ID"], order=["lab-number"])
    assert sorted(row["rank"] for row in numbered.collect()) == [1, 1, 2]
    assert numbered.labels["rank"].secrecy == frozenset()
    words = frame.explode("word", F.split("`path-report-text`", " ")).select("lab-number", "word")
    assert len(words.collect()) == 7
    assert words.labels["lab-number"].secrecy == {"clinical(*)"}, "how many words there are tells of the text"
    twice = frame.union(domain.client("chen").labelled(REPORT)).select("lab-number")
    assert len(twice.collect()) == 6
    sites = frame.where("`SNOMED-CT-codes` = '302513006'").select("hospital-ID")
    for how, rows in (("inner", 2), ("left", 3), ("full", 3), ("left_anti", 1)):
        joined = frame.select("lab-number", "hospital-ID").join(sites, "hospital-ID", how)
        assert len(joined.collect()) == rows
        assert joined.labels["lab-number"].secrecy == {"clinical(*)"}, how
    assert len(frame.limit(2, order=["lab-number"]).drop("path-report-text").collect()) == 2
    assert "clinical(*)" in repr(frame)


@pytest.mark.requirement("17.03")
@pytest.mark.requirement("17.11")
@pytest.mark.requirement("22.19")
def test_the_monitor_releases_only_the_number(domain: Any) -> None:
    """It reads codes in its frames and shows none; through the counter the number leaves, and the audit says why."""
    frame = reports(domain, "monitor")
    bladder = frame.where("`SNOMED-CT-codes` like '302512001%'")
    for secret in (frame, bladder.select("hospital-ID"), bladder.groupBy().agg(n=F.count(F.lit(1)))):
        for leave in (secret.collect, secret.show, secret.toPandas):
            with pytest.raises(FlowError):
                leave()
    assert {row["path-report-text"] for row in read_here(domain.home, REPORT, as_="monitor")} == {None}
    counted = bladder.through("counter", by=["hospital-ID"], reason="bladder reports by hospital")
    assert sorted(map(tuple, counted.collect())) == [("RGT01", 1), ("RGT02", 1)]
    assert counted.publish(COUNT, publication="counts").events == 2
    assert ("monitor", "counter: bladder reports by hospital") in audited(domain, "DECLASSIFIED")


@pytest.mark.requirement("17.11")
def test_only_declared_components_make_exceptions(domain: Any) -> None:
    """A component is for the clients that the policy names, and for the tags that it lists."""
    frame = reports(domain, "ali")
    for client, name in (("chen", "counter"), ("ali", "counter"), ("monitor", "bridge"), ("ali", "anonymiser")):
        with pytest.raises(FlowError) as raised:
            reports(domain, client).through(name, reason="try")
        assert raised.value.code == "NO_COMPONENT"
    passed = frame.select("patient-name", "path-report-text").through("bridge", reason="referral")
    assert passed.labels["patient-name"] == PUBLIC
    assert passed.labels["path-report-text"].secrecy == CLINICAL, "the bridge has no privilege for it"
    with pytest.raises(UsageError) as raised_usage:
        frame.through("bridge", reason=" ")
    assert raised_usage.value.code == "REASON_MISSING"


@pytest.mark.requirement("17.11")
@pytest.mark.threat("T71")
def test_a_count_does_not_free_what_it_counts_by(domain: Any) -> None:
    """The number of reports for each text leaves; the texts themselves do not, under another name neither."""
    counted = reports(domain, "monitor").through("counter", by=["path-report-text"], reason="try")
    renamed = reports(domain, "monitor").withColumnRenamed("path-report-text", "ward")
    for secret in (counted, renamed.through("counter", by=["ward"], reason="try").select("ward")):
        with pytest.raises(FlowError):
            secret.collect()
    assert sorted(row[0] for row in counted.select("count").collect()) == [1, 1, 1]


NOTE, REMARK = "uk.nhs.note", "uk.nhs.remark"


@pytest.mark.requirement("17.07")
def test_a_type_of_the_same_name_is_not_judged_by_the_labels_of_ours(domain: Any, made: Command) -> None:
    """The domain's notes are clinical; those of the laboratory have the name and the attributes, and are public."""
    file = made.home / "policy" / "labels.toml"
    kept = file.read_text("utf-8")
    define(made, NOTE, ("patient-ID", "comment"))
    made.do("type", "define", f"lab/{NOTE}@1", "--attribute", "patient-ID:string", "--attribute", "comment:string")
    try:
        file.write_text(f'{kept}[types."domain/{NOTE}"]\ncomment = {{ S = ["clinical(*)"] }}\n', "utf-8")
        text = domain.client("chen").labelled(REPORT).select(F.col("`path-report-text`").alias("comment"))
        with pytest.raises(FlowError, match="`comment` may not flow"):
            text.publish(f"lab/{NOTE}")
        assert text.publish(f"domain/{NOTE}").events == 3
    finally:
        file.write_text(kept, "utf-8")


@pytest.mark.requirement("17.07")
@pytest.mark.threat("T71")
def test_whoever_publishes_secret_rows_does_not_learn_how_many(domain: Any, made: Command) -> None:
    """The monitor may put texts into a clinical type; what became of them is in the audit, and not in its hands."""
    file = made.home / "policy" / "labels.toml"
    kept = file.read_text("utf-8")
    define(made, REMARK, ("comment",))
    try:
        file.write_text(f'{kept}[types."{REMARK}"]\ncomment = {{ S = ["clinical(*)"] }}\n', "utf-8")
        frame = domain.client("monitor").labelled(REPORT)
        text = F.col("`path-report-text`")
        for word in ("tumour", "nothing of the kind"):
            assert frame.where(text.contains(word)).select(text.alias("comment")).publish(REMARK) is None
        failing = frame.select(text.cast("int").cast("string").alias("comment"))
        with pytest.raises(UnavailableError) as raised:
            failing.publish(REMARK)
        assert raised.value.message == "Spark failed"
        seen = read_here(domain.home, REMARK, as_="chen")
        assert [row["comment"] for row in seen] == ["Large solid tumour"]
    finally:
        file.write_text(kept, "utf-8")


@pytest.mark.requirement("17.06")
def test_a_column_in_another_case_is_another_column(domain: Any, spark: Any) -> None:
    """Whoever turns case off in the session cannot put a secret into a public column by its name in capitals."""
    frame = reports(domain, "chen").withColumnRenamed("path-report-text", "text").withColumnRenamed("lab-number", "lab")
    texts = {row["text"] for row in frame.select("text").collect()}
    spark.conf.set("spark.sql.caseSensitive", "false")
    try:
        for made in (
            lambda: frame.window("LAB", F.max("text"), partition=["hospital-ID"]),
            lambda: frame.explode("LAB", F.array("text")),
            lambda: frame.withColumn("LAB", F.col("text")),
        ):
            with suppress(AnalysisException):  # Spark cannot tell the two apart, which is well
                found = made().select("lab")
                assert "clinical(*)" in found.labels["lab"].secrecy or not texts & {row[0] for row in found.collect()}
    finally:
        spark.conf.set("spark.sql.caseSensitive", "true")


def test_cells_are_left_out_one_by_one(domain: Any) -> None:
    """A comment flows to the attribute of the same patient; with `omit` that of another row's patient does not."""
    frame = reports(domain, "both").select("patient-ID", F.col("`path-report-text`").alias("comment"))
    with pytest.raises(FlowError):
        frame.publish(COMMENT, publication="strict")
    assert frame.publish(COMMENT, publication="own", omit=True).events == 3
    mixed = frame.withColumn("patient-ID", F.lit(SMITH))
    assert mixed.publish(COMMENT, publication="mixed", omit=True).events == 3
    with pytest.raises(DeniedError, match="LABELS_CLOSE_ALL"):
        read_here(domain.home, COMMENT, as_="strict")  # nobody vouches for comments
    seen = {(row["patient-ID"], row["comment"]) for row in read_here(domain.home, COMMENT, as_="both")}
    assert (PATTERSON, "Large solid tumour") in seen
    assert (SMITH, "Large solid tumour") not in seen, "Patterson's text does not go under Smith's name"
    assert (SMITH, "No abnormality") in seen


def test_gathered_groups_are_as_secret_as_their_own_rows(domain: Any) -> None:
    """Without `gather` a group may hold anybody; with it each group remembers whose rows it holds."""
    frame = reports(domain, "both")
    whole = frame.groupBy("hospital-ID").agg(comment=F.max("`path-report-text`"))
    by_group = frame.groupBy("hospital-ID").agg(comment=F.max("`path-report-text`"), gather=True)
    assert whole.labels == by_group.labels
    assert {tuple(row) for row in by_group.collect(omit=True)} == {("RGT01", "No abnormality"), ("RGT02", None)}


REFUSED = {
    "a Python function": lambda: F.udf(lambda value: value)("hospital-ID"),
    "a subquery": lambda: F.expr("(select 1)"),
    "Java": lambda: F.expr("java_method('java.lang.System', 'getenv', 'HOME')"),
    "chance": F.rand,
    "an error that prints": lambda: F.raise_error("lab-number"),
    "a file's name": F.input_file_name,
    "a count that hides": lambda: F.count(F.lit(1)),
    "a window that hides": lambda: F.count(F.lit(1)).over(Window.partitionBy("hospital-ID")),
    "a list that hides": lambda: F.explode(F.split("hospital-ID", "T")),
}


@pytest.mark.requirement("17.07")
@pytest.mark.parametrize("column", REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_followed_is_refused(domain: Any, column: Any) -> None:
    """Code, subqueries, reflection, chance, errors and what looks at other rows are no expressions of columns."""
    with pytest.raises(UsageError) as raised:
        reports(domain, "chen").select(column())
    assert raised.value.code == "EXPRESSION_REFUSED"


@pytest.mark.threat("T71")
def test_an_error_does_not_print_what_may_not_be_seen(domain: Any) -> None:
    """A cast that fails names its condition and no value, neither in the message nor in what it came from."""
    frame = reports(domain, "chen").select(F.col("`path-report-text`").cast("int").alias("number"))
    with pytest.raises(UnavailableError) as raised:
        frame.collect()
    shown: BaseException | None = raised.value
    while shown is not None:
        assert "tumour" not in str(shown)
        assert "abnormality" not in str(shown)
        shown = shown.__cause__ or shown.__context__


def test_columns_that_carry_labels_are_nobodys(domain: Any) -> None:
    """They can be neither read nor named, and frames go only with labelled frames of the same client."""
    frame = reports(domain, "both")
    for wrong in (lambda: frame.select("_carrier_0"), lambda: frame.withColumn("_carrier_9", F.lit(1))):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(UsageError, match="NOT_LABELLED"):
        frame.union(reports(domain, "ali"))
    with pytest.raises(UsageError, match="NOT_LABELLED"):
        frame.join(domain.client("both").read(REPORT), "lab-number")


def test_the_bypass_is_named_unsafe_and_audited(domain: Any, caplog: pytest.LogCaptureFixture) -> None:
    """It gives a plain frame, warns, and the audit has who and why."""
    plain = reports(domain, "ali").unsafe_frame("the auditor asked")
    assert "UNSAFE_FRAME" in caplog.text
    assert tuple(plain.columns) == PARTS
    assert audited(domain, "UNSAFE_FRAME") == [("ali", "the auditor asked")]
    with pytest.raises(UsageError, match="REASON_MISSING"):
        reports(domain, "ali").unsafe_frame("")


@pytest.mark.requirement("17.07")
@pytest.mark.threat("T71")
def test_what_frames_may_hold_is_read_by_no_option_that_somebody_writes(
    domain: Any, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither made up, nor taken from a frame for another filter, client, version or type."""
    raw = (domain.path / "policy" / "labels.toml").read_bytes()
    made_up = json.dumps({"policy": hashlib.sha256(raw).hexdigest(), "tags": ["*"]})
    seen: list[str] = []
    kept = domain.engine.labelled
    monkeypatch.setattr(
        domain.engine, "labelled", lambda asked, client, read: seen.append(read.ticket) or kept(asked, client, read)
    )
    domain.client("monitor").labelled(REPORT)
    domain.client("ali").labelled(REPORT)
    monitor, ali = seen
    base = {"home": str(domain.path), "as": "monitor", "type": REPORT}
    for labelled, more in (
        (made_up, {}), ("", {}), ("é", {}), (ali, {}), (monitor, {"where": "hospital-ID = 'RGT02'"}),
        (monitor, {"version": "1"}), (monitor, {"type": COMMENT}), (monitor, {"as": "ali"}), (monitor[:-8], {}),
    ):  # fmt: skip
        options = {**base, "labelled": labelled, **more}
        with pytest.raises(Exception, match="LABELLED_READ"):
            spark.read.format("maia").options(**options).load().collect()
        columns = "`lab-number` string, `SNOMED-CT-codes` string"
        with pytest.raises(Exception, match=r"LABELLED_READ|NO_ATTRIBUTE"):
            spark.read.format("maia").options(**options).schema(columns).load().collect()
    assert {who for who, _ in audited(domain, "LABELLED_READ")} == {"monitor", "ali"}


def test_a_frame_reads_by_the_policy_that_labelled_it(domain: Any, made: Command) -> None:
    """A client that may see more later does not see it in a frame whose labels do not know; it reads again."""
    frame = domain.client("brown").labelled(REPORT)
    assert tuple(frame.columns) == PARTS[2:5]
    file = made.home / "policy" / "labels.toml"
    kept = file.read_text("utf-8")
    try:
        file.write_text(f'{kept}[readers.brown]\nS = ["clinical({PATTERSON})"]\n', "utf-8")
        with pytest.raises(MaiaError) as raised:
            frame.collect()
        assert raised.value.code == "LABEL_POLICY_CHANGED"
        assert "path-report-text" in domain.client("brown").labelled(REPORT).columns
    finally:
        file.write_text(kept, "utf-8")


def test_a_policy_that_is_wrong_opens_nothing(domain: Any, made: Command) -> None:
    """A slip of the pen, or an attribute that the type does not have: every read waits, with the reason."""
    file = made.home / "policy" / "labels.toml"
    kept = file.read_text("utf-8")
    try:
        for wrong in ("[types", "[reader.ali]\nS = []\n", f'[types."{REPORT}"]\ncolour = {{ S = ["x"] }}\n'):
            file.write_text(wrong, "utf-8")
            with pytest.raises(MaiaError) as raised:
                domain.client("ali").read(REPORT)
            assert raised.value.code == "LABELS_UNKNOWN"
    finally:
        file.write_text(kept, "utf-8")
