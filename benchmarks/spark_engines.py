"""Cells in Spark's JVM against cells in Python workers, and both against a bare scan of the changes.

    python -m benchmarks.spark_engines [--graph epinions.tsv] [--scale 1.0] [--demo] [--output result.json]

Prints one table, with what each measure must reach and what it should; `--output` keeps every number. The stream is
that of `spark_overhead`: a FIFO window slides over a graph. Every measure is taken for both engines in the same run,
each in a separate process, one after the other; `--scale` shrinks batches for a trial. Needs an otherwise idle
machine to mean anything.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.data import Data
from benchmarks.spark_overhead import (
    BATCHES,
    SMALL_BATCHES,
    SMALL_ROWS,
    drained,
    fixed_cost,
    recovery,
    session,
    source,
    write_files,
)
from benchmarks.store import machine
from benchmarks.workloads import WORKLOADS
from crown.changes import CHANGE_TYPE, INSERT
from crown.spark import maintain
from crown.spark.required import ENGINE
from crown.workload import streams

ENGINES = ("jvm", "python")
# Changes in a micro-batch of each measure.
SPEED, SCAN, CELLS = 300_000, 1_000_000, 100_000
# Java compiles what a query generates on a second core, as long as there is one: with one cell for
# nothing, with two at their cost. So cells are compared after that.
WARM = 24
PARTS = (*ENGINES, "scan")
# The query whose lost engine is rebuilt: its result is small enough to come as the delta of a few
# batches.
RECOVERED = "four_hop_project"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--graph", help="an edge list, e.g. SNAP's Epinions; generated when not given")
    arguments.add_argument("--scale", type=float, default=1.0, help="of the graph and the batches")
    arguments.add_argument("--demo", action="store_true", help="also time `crown demo` from a cold start")
    arguments.add_argument("--output", type=Path)
    arguments.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    arguments.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.part is not None:
        options.output.write_text(json.dumps(measure_part(options.directory, options.part)))
        return
    found = measure(options.graph, options.scale, with_demo=options.demo)
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n")
    print(table(_rows(found["measures"])))


def measure(graph: str | None, scale: float, *, with_demo: bool) -> dict[str, Any]:
    directory = Path(tempfile.mkdtemp(prefix="crown-engines-"))
    data = Data(graph=graph, scale=scale)
    edges = data.edges()
    try:
        changes = write_streams(edges, directory, scale)
        measures = {part: _part(directory, part) for part in PARTS}
        measures["python"]["recovery"] = recovery(RECOVERED, inserted(edges))
        measures["python"]["recovery_of_log"] = recovery(RECOVERED, changes.slice(0, round(SCAN * scale)))
        if with_demo:
            for engine in ENGINES:
                measures[engine]["demo"] = demo(engine)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    stamp = {"machine": machine(), "data": {**data.describe(), "changes": changes.num_rows}}
    return {**stamp, "measures": measures}


def write_streams(edges: pa.Table, directory: Path, scale: float) -> pa.Table:
    """The changes of every measure, as files."""
    most = round(SCAN * scale) * BATCHES
    window = round(0.2 * edges.num_rows + 0.5)
    rounds = pa.concat_tables([edges] * -(-(most + window) // (2 * edges.num_rows)))
    changes = streams.count_window({"G": rounds}, window, drain=False)["G"].drop_columns(["_sequence"])
    for name, rows, batches in (("speed", SPEED, BATCHES), ("scan", SCAN, BATCHES), ("cells", CELLS, WARM + BATCHES)):
        write_files(changes.slice(0, round(rows * scale) * batches), directory / name, batches)
    write_files(changes.slice(0, SMALL_BATCHES * SMALL_ROWS), directory / "small", SMALL_BATCHES)
    write_files(inserted(edges), directory / "log", 5)
    return changes


def inserted(edges: pa.Table) -> pa.Table:
    """Every edge inserted once: a log without waste, which is never rewritten as a snapshot."""
    return edges.append_column(CHANGE_TYPE, pa.array([INSERT] * edges.num_rows))


def _part(directory: Path, part: str) -> dict[str, Any]:
    """One engine in a separate process: a JVM keeps what it has compiled, and its memory."""
    output = directory / "part.json"
    command = [sys.executable, "-m", "benchmarks.spark_engines", "--part", part]
    subprocess.run([*command, "--directory", str(directory), "--output", str(output)], check=True)
    found: dict[str, Any] = json.loads(output.read_text())
    return found


def measure_part(directory: Path, part: str) -> dict[str, Any]:
    spark = _plain_session() if part == "scan" else session()
    try:
        return _scans(spark, directory) if part == "scan" else _engine(spark, directory, part)
    finally:
        spark.stop()


def _plain_session() -> SparkSession:
    """Spark as it is without Crown, whose settings make a bare scan's micro-batches faster too."""
    builder = SparkSession.builder.master("local[2]").appName("bare scan").config("spark.driver.memory", "2g")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _scans(spark: SparkSession, directory: Path) -> dict[str, Any]:
    drained(source(spark, directory / "scan"), directory, "scan")
    return {
        "scan": asdict(drained(source(spark, directory / "scan"), directory, "scan")),
        "micro_batch_ms": fixed_cost(source(spark, directory / "small"), directory),
    }


def _engine(spark: SparkSession, directory: Path, engine: str) -> dict[str, Any]:
    spark.conf.set(ENGINE, engine)

    def view(query: str, files: str, cells: int = 2) -> DataFrame:
        return maintain(spark, WORKLOADS[query].text(), {"G": source(spark, directory / files)}, cells=cells)

    drained(view("three_hop", "speed"), directory, "speed")
    found: dict[str, Any] = {"micro_batch_ms": fixed_cost(view("three_hop", "small"), directory)}
    found["three_hop_300k"] = asdict(drained(view("three_hop", "speed"), directory, "speed"))
    for query in ("three_hop", "four_hop_project"):
        found[f"{query}_1m"] = asdict(drained(view(query, "scan"), directory, "scan"))
    for cells in (1, 2):
        spark.conf.set("spark.sql.shuffle.partitions", str(cells))
        found[f"cells_{cells}"] = asdict(drained(view("three_hop", "cells", cells), directory, "cells", warm=WARM))
    if engine == "jvm":
        found["recovery"] = _recovery(spark, directory)
    return found


def _recovery(spark: SparkSession, directory: Path) -> float:
    """Rows rebuilt per second and cell: the time of a batch of no rows to speak of in an engine that is lost."""
    sql, log, checkpoint = WORKLOADS[RECOVERED].text(), directory / "log", directory / "lost"
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    rates = []
    for _ in range(2):
        deltas = maintain(spark, sql, {"G": source(spark, log)}, cells=1)
        writer = deltas.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        reports = [p.observedMetrics["crown"] for p in query.recentProgress if "crown" in (p.observedMetrics or {})]
        rates.append((sum(report["updates"] for report in reports), reports[0]["load"][0]["seconds"]))
        # Ending the query frees its engines; one more change makes the next run rebuild them.
        time.sleep(5)
        write_files(pa.table({"src": [0], "dst": [0], "_change_type": ["insert"]}), directory / "more", 1)
        for number, file in enumerate(sorted((directory / "more").iterdir())[:1]):
            os.utime(file, (1_800_000_000 + number,) * 2)
            file.rename(log / "more.parquet")
        shutil.rmtree(directory / "more")
    return float(rates[0][0] / rates[1][1])


def demo(engine: str) -> dict[str, float]:
    """Seconds of `crown demo` from a cold start: of the whole process, and of the stream as the demo tells them."""
    settings = {"PYSPARK_SUBMIT_ARGS": f"--conf {ENGINE}={engine} pyspark-shell", "COLUMNS": "200"}
    command = [str(Path(sys.executable).with_name("crown")), "demo"]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as output:
        said = subprocess.run(
            [*command, "--output", output],
            check=True,
            env={**os.environ, **settings},
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
    seconds = time.monotonic() - started
    told = re.search(r"throughput: .* updates in ([\d.]+) s", said)
    assert told is not None, said
    return {"seconds": seconds, "stream_seconds": float(told[1])}


Row = tuple[str, str, str, str]


def table(rows: Sequence[Row]) -> str:
    """A table in Markdown.

    >>> print(table([("speed", "2.00", "1.8", "2.5")]))
    | measure, one run, two cores, warm | measured | must | goal |
    |---|---|---|---|
    | speed | 2.00 | 1.8 | 2.5 |
    """
    head = [("measure, one run, two cores, warm", "measured", "must", "goal"), ("---",) * 4]
    return "\n".join(f"| {' | '.join(row)} |" if row[0] != "---" else "|---|---|---|---|" for row in [*head, *rows])


def _rows(measures: dict[str, Any]) -> list[Row]:
    jvm, python, scan = (measures[part] for part in PARTS)

    def speed(found: dict[str, Any], name: str) -> float:
        return float(found[name]["rows_per_second"])

    def cpu(found: dict[str, Any]) -> float:
        return float(sum(found["three_hop_300k"]["cpu_seconds"].values()))

    against_scan = [speed(jvm, f"{name}_1m") / speed(scan, "scan") for name in ("three_hop", "four_hop_project")]
    against_python = [speed(python, f"{name}_1m") / speed(scan, "scan") for name in ("three_hop", "four_hop_project")]
    fixed = [found["micro_batch_ms"] for found in (jvm, python, scan)]
    cells = [speed(found, "cells_2") / speed(found, "cells_1") for found in (jvm, python)]
    rows = [
        (
            f"3-Hop, batches of {SPEED:,}, changes/s against Python workers",
            f"{speed(jvm, 'three_hop_300k') / speed(python, 'three_hop_300k'):.2f} "
            f"({speed(jvm, 'three_hop_300k'):,.0f} and {speed(python, 'three_hop_300k'):,.0f})",
            "1.8",
            "2.5",
        ),
        (
            "the same, CPU seconds against Python workers",
            f"{cpu(jvm) / cpu(python):.2f} ({cpu(jvm):.1f} and {cpu(python):.1f} s)",
            "0.5",
            "0.33",
        ),
        (
            "batches of a million against a bare parquet scan, 3-Hop and 4-Hop project",
            f"{against_scan[0]:.2f} and {against_scan[1]:.2f} (Python workers {against_python[0]:.2f} and "
            f"{against_python[1]:.2f})",
            "0.45",
            "0.6",
        ),
        (
            "fixed cost of a micro-batch, against a bare scan's",
            f"{fixed[0] / fixed[2]:.2f} ({fixed[0]:.0f} and {fixed[2]:.0f} ms; Python workers {fixed[1]:.0f} ms)",
            "2",
            "1.5",
        ),
        (
            f"two cells against one, 3-Hop, batches of {CELLS:,}",
            f"{cells[0]:.2f} (Python workers {cells[1]:.2f})",
            "1.3",
            "1.6",
        ),
        (
            "recovery, changes of a window's log applied again per second and cell",
            f"{python['recovery_of_log'] / 1e6:.1f} M (Python workers)",
            "2 M",
            "5 M",
        ),
        (
            "recovery, rows of a table without deletions rebuilt per second and cell",
            f"{jvm['recovery'] / 1e6:.1f} M (Python workers {python['recovery'] / 1e6:.1f} M)",
            "2 M",
            "5 M",
        ),
    ]
    if "demo" in jvm:
        told = " and ".join(f"{found['demo']['stream_seconds']:.1f} s" for found in (jvm, python))
        whole = " and ".join(f"{found['demo']['seconds']:.1f} s" for found in (jvm, python))
        measured = f"stream {told} (with Python workers), the whole process {whole}"
        rows.append(("the demo: 290,000 updates in 20 batches, from a cold start", measured, "25 s", "15 s"))
    return rows


if __name__ == "__main__":
    main()
