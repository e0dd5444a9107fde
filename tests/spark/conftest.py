"""One Spark session for all tests here; it retries failed tasks, since tests kill its workers."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install crown-ivm[spark]")

from pyspark.sql import SparkSession

from crown.spark import configure
from crown.spark.required import ENGINE
from crown.spark.settings import JAR
from tests.spark.broker import Kafka, broker, jars
from tests.support.postgres import running_server

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.fixture(scope="session")
def quick_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Python for Spark's workers without the zipped PySpark that Spark puts first on their path.

    Nothing is compiled in advance in a zip, so workers take four times as long to start, and on a busy machine longer
    than the 10 s that Spark waits for them. The installed PySpark is the same one.
    """
    script = tmp_path_factory.mktemp("python") / "python"
    without = 'PYTHONPATH="$(printf %s "$PYTHONPATH" | tr : "\\n" | grep -v "\\.zip$" | paste -s -d : -)"'
    script.write_text(f'#!/bin/sh\nexport {without}\nexec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    os.environ["PYSPARK_PYTHON"] = str(script)
    return str(script)


@pytest.fixture(scope="session")
def spark(quick_python: str) -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2,4]").appName("crown-tests")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
        # Deep regular expressions in Spark's own error messages need more than the default stack.
        "spark.driver.extraJavaOptions": "-Xss4m",
        # Many queries over a few rows: compiling them would take most of the time. Those of
        # applications that tests start are compiled.
        **INTERPRETED,
        # Workers must find `tests.*` as this process does.
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path),
    }.items():
        builder = builder.config(name, value)
    session = configure(builder, cells=2).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(params=["jvm", pytest.param("python", marks=[pytest.mark.slow] if JAR.exists() else [])])
def engine(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """Cells in Spark's JVM, then in Python workers; those have their turn in the long run, if there is a JVM to do it.

    Parametrize with `indirect` to run a test on both in the default run.
    """
    name: str = request.param
    if name == "jvm" and not JAR.exists():
        pytest.skip("there is no jar: install a JDK and run make setup")
    spark.conf.set(ENGINE, name)
    yield name
    spark.conf.unset(ENGINE)


@pytest.fixture
def python_engine(spark: SparkSession) -> Iterator[None]:
    """Cells in Python workers."""
    spark.conf.set(ENGINE, "python")
    yield
    spark.conf.unset(ENGINE)


@pytest.fixture
def cells(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[int]:
    """The session set to a number of cells (parametrize with `indirect`, 2 when not)."""
    number = getattr(request, "param", 2)
    spark.conf.set("spark.sql.shuffle.partitions", str(number))
    yield number
    spark.conf.set("spark.sql.shuffle.partitions", "2")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with running_server() as connection:
        yield connection


@pytest.fixture(scope="session")
def kafka(quick_python: str) -> Iterator[Kafka]:
    if shutil.which("javac") is None:
        pytest.skip("there is no javac to compile Kafka's client with: install a JDK")
    jars("connector")
    with tempfile.TemporaryDirectory(prefix="crown-kafka-") as folder, broker(Path(folder)) as servers:
        yield Kafka(servers, Path(folder))
