"""Find out whether a connector's jar will be on Spark's class path, without starting Spark."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

_PATHS = ("spark.jars", "spark.driver.extraClassPath")


def has_connector(artifact: str, settings: Mapping[str, str]) -> bool:
    """Return whether a jar whose name holds `artifact` is among PySpark's or is named by a setting."""
    return any(artifact in text for text in (*_words(settings), *_jars(settings)))


def local_jars(settings: Mapping[str, str]) -> list[str]:
    """Return the files on this machine that `spark.jars` names."""
    named = [jar.strip() for jar in settings.get("spark.jars", "").split(",") if jar.strip()]
    return [jar.removeprefix("file:") for jar in named if "://" not in jar and not glob.has_magic(jar)]


def _words(settings: Mapping[str, str]) -> Iterator[str]:
    """Yield every setting that names jars: from the pipeline, the defaults of the installation, the command line."""
    yield from settings.values()
    yield os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    for home in _homes():
        folder = Path(os.environ.get("SPARK_CONF_DIR", home / "conf"))
        defaults = folder / "spark-defaults.conf"
        if defaults.is_file():
            yield defaults.read_text(encoding="utf-8", errors="replace")


def _jars(settings: Mapping[str, str]) -> Iterator[str]:
    for home in _homes():
        yield from (jar.name for jar in (home / "jars").glob("*.jar"))
    for name in _PATHS:
        for entry in settings.get(name, "").replace(",", os.pathsep).split(os.pathsep):
            yield from glob.glob(entry if glob.has_magic(entry) else f"{entry}/*") if entry else ()


def _homes() -> list[Path]:
    homes = [Path(home)] if (home := os.environ.get("SPARK_HOME")) else []
    spec = find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        homes.append(Path(spec.origin).parent)
    return homes
