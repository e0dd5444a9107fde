"""Checkpoints on local disks: written as Hadoop writes them, without the processes that it starts for each file."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from crown.spark import configure, maintain
from crown.spark.settings import JAR
from tests.spark.streams import GRAPH, GRAPH_QUERIES, Feed, collect_batches
from tests.support.judge import Change, Judge

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not JAR.exists(), reason="there is no jar: install a JDK and run make setup"),
]

IMPLEMENTATION = "spark.hadoop.fs.AbstractFileSystem.file.impl"
CHECKSUMS = "spark.sql.streaming.checkpoint.fileChecksum.enabled"


def test_a_stream_starts_no_process_for_its_checkpoint(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    """Java's flight recorder sees every process that Java starts."""
    judge = Judge(GRAPH_QUERIES[2], GRAPH)
    feed = Feed(tmp_path / "in", judge)
    feed.write([Change("g", (1, 2))])
    deltas = maintain(spark, judge.sql, feed.tables(spark), cells=cells)
    java: Any = spark._jvm
    recording = java.jdk.jfr.Recording()
    recording.enable("jdk.ProcessStart")
    recording.start()
    try:
        java.java.lang.ProcessBuilder(["true"]).start().waitFor()
        collect_batches(deltas, tmp_path / "checkpoint")
        recording.stop()
        recording.dump(java.java.io.File(str(tmp_path / "recording")).toPath())
    finally:
        recording.close()
    events = java.jdk.jfr.consumer.RecordingFile.readAllEvents(java.java.io.File(str(tmp_path / "recording")).toPath())
    started = [str(event.getString("command")) for event in events]
    assert "true" in started
    # RocksDB's own files, now and then one, go another way.
    assert not [command for command in started if str(tmp_path) in command and "SSTs" not in command]


def contexts(spark: SparkSession) -> list[Any]:
    """Hadoop's own way to local files, and Crown's."""
    java: Any = spark._jvm
    found = []
    for implementation in ("org.apache.hadoop.fs.local.LocalFs", "crown.spark.LocalFs"):
        settings = java.org.apache.hadoop.conf.Configuration(spark._jsc.hadoopConfiguration())
        settings.set("fs.AbstractFileSystem.file.impl", implementation)
        found.append(java.org.apache.hadoop.fs.FileContext.getFileContext(settings))
    return found


def test_files_links_and_permissions_are_hadoops(spark: SparkSession, tmp_path: Path) -> None:
    java: Any = spark._jvm
    written = []
    for number, context in enumerate(contexts(spark)):
        base = tmp_path / str(number)
        base.mkdir()

        def path(name: str, base: Path = base) -> Any:
            return java.org.apache.hadoop.fs.Path(f"file://{base}/{name}")

        def permission(mode: int) -> Any:
            return java.org.apache.hadoop.fs.permission.FsPermission(f"{mode:o}")

        context.mkdir(path("folder"), permission(0o755), True)
        (base / "early").write_text("kept")
        context.rename(path("early"), path("folder/late"), no_options(spark))
        context.setPermission(path("folder/late"), permission(0o640))
        (base / "link").symlink_to("folder/late")
        links = [context.getFileLinkStatus(path(name)).isSymlink() for name in ("link", "folder/late")]
        with pytest.raises(Exception, match="FileNotFoundException"):
            context.getFileLinkStatus(path("none"))
        modes = {
            str(file.relative_to(base)): oct(file.lstat().st_mode) for file in base.rglob("*") if not file.is_symlink()
        }
        written.append((modes, links))
    assert written[0] == written[1]
    assert written[0][1][1] is False


def no_options(spark: SparkSession) -> Any:
    gateway: Any = spark.sparkContext._gateway
    return gateway.new_array(getattr(gateway.jvm.org.apache.hadoop.fs, "Options$Rename"), 0)


def test_a_running_java_without_the_jar_keeps_its_own_files(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could not load the class, and no checkpoint could be written."""

    def options(master: str) -> dict[str, str]:
        builder = SparkSession.Builder().master(master)
        configure(builder)
        return dict(builder._options)

    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    assert options("local[2]")[IMPLEMENTATION] == "crown.spark.LocalFs", "this Java has the jar"
    monkeypatch.setattr(SparkContext, "_jvm", None)
    assert options("local[2]")[IMPLEMENTATION] == "crown.spark.LocalFs", "Java will start with the jar"
    assert options("local[2]")[CHECKSUMS] == "false"
    assert CHECKSUMS not in options("spark://somewhere:7077")
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert IMPLEMENTATION not in options("local[2]"), "spark-submit has started Java"
    monkeypatch.setattr(SparkContext, "_jvm", types.SimpleNamespace(crown=types.SimpleNamespace(spark=Without())))
    assert IMPLEMENTATION not in options("local[2]"), "Java runs without the jar"


class Without:
    """As py4j's package of classes that are not there: what is asked for is a package again."""

    LocalFs = object()
