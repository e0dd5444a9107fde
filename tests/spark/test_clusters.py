"""The examples on what they are made for: a standalone cluster on loopback, and Spark Declarative Pipelines."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pyspark
import pytest

from tests.spark.streams import GRAPH, Feed, end, random_changes, wait_until
from tests.support.judge import Judge, multiset, split_delta

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "examples"
SQL = "SELECT a.src, b.dst, COUNT(*) AS paths FROM g a JOIN g b ON a.dst = b.src GROUP BY a.src, b.dst"
SPARK_HOME = Path(pyspark.__file__).parent
LIMIT_SECONDS = 900


@pytest.fixture
def environment(tmp_path: Path, quick_python: str) -> dict[str, str]:
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return {
        **os.environ,
        "PYTHONPATH": path,
        "PYSPARK_PYTHON": quick_python,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "TMPDIR": str(tmp_path),
    }


@pytest.fixture
def feed(rng: random.Random, tmp_path: Path) -> Feed:
    judge = Judge(SQL, GRAPH)
    feed = Feed(tmp_path / "in", judge)
    for _ in range(3):
        changes = random_changes(rng, judge.tables, 40)
        feed.write(changes)
        judge.apply(changes)
    return feed


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def launch(environment: dict[str, str], *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(SPARK_HOME / "bin" / "spark-class"), *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def run_to_end(command: list[str], environment: dict[str, str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command; whatever happens, nothing that it started outlives it."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )
    try:
        output, errors = process.communicate(timeout=LIMIT_SECONDS)
    finally:
        end(process)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


@pytest.fixture
def cluster(environment: dict[str, str]) -> Iterator[str]:
    """A master and two workers, from the pyspark package itself."""
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    processes = [
        launch(environment, f"{deploy}.master.Master", "--host", "127.0.0.1", "-p", str(port), "--webui-port", "0")
    ]
    for _ in range(2):
        options = ["--host", "127.0.0.1", "-c", "1", "-m", "1g", "--webui-port", "0", master]
        processes.append(launch(environment, f"{deploy}.worker.Worker", *options))
    try:
        yield master
    finally:
        for process in processes:
            end(process)


def test_standalone_cluster(cluster: str, environment: dict[str, str], feed: Feed, tmp_path: Path) -> None:
    submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster]
    for option in (
        "spark.ui.enabled=false",
        "spark.driver.host=127.0.0.1",
        "spark.executor.memory=512m",
        f"spark.executorEnv.PYTHONPATH={environment['PYTHONPATH']}",
    ):
        submit += ["--conf", option]
    arguments = [str(EXAMPLES / "standalone" / "two_hops.py"), str(feed.path / "g"), str(tmp_path / "out"), "2"]
    done = run_to_end([*submit, *arguments], environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"{len(feed.judge.result)} pairs" in done.stdout
    came, went = split_delta(pyarrow.parquet.read_table(tmp_path / "out" / "deltas"))
    came.subtract(went)
    assert +came == feed.judge.result
    base = tmp_path / f"crown-{os.getuid()}"
    assert wait_until(lambda: not base.exists() or not list(base.iterdir())), list(base.iterdir())


def test_declarative_pipeline(environment: dict[str, str], feed: Feed, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(EXAMPLES / "declarative", project)
    spec = project / "spark-pipeline.yml"
    lines = spec.read_text().splitlines()
    storage = f"storage: {(tmp_path / 'storage').as_uri()}"
    spec.write_text("\n".join(storage if line.startswith("storage:") else line for line in lines))
    warehouse = tmp_path / "warehouse"
    done = run_to_end(
        [
            str(SPARK_HOME / "bin" / "spark-pipelines"),
            "--conf",
            f"spark.sql.warehouse.dir={warehouse}",
            "--conf",
            "spark.driver.host=127.0.0.1",
            "run",
            "--spec",
            str(spec),
        ],
        {**environment, "TWO_HOPS_INPUT": str(feed.path / "g")},
        cwd=project,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    came, went = split_delta(pyarrow.parquet.read_table(warehouse / "two_hops"))
    came.subtract(went)
    assert multiset((+came).elements()) == feed.judge.result
