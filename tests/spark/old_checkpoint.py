"""A checkpoint, its target and what it has read, as one archive that later versions must go on with.

`python -m tests.spark.old_checkpoint ARCHIVE` writes one with the version that is installed. Those in `fixtures` are
named after the format of the state in them and are never written again.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from crown.spark import configure, maintain, materialize
from tests.spark.streams import Feed, run_to_end
from tests.support.judge import Change, Judge

SCHEMA = "CREATE TABLE g (dst BIGINT, src BIGINT); CREATE TABLE u (grp STRING, id BIGINT PRIMARY KEY)"
SQL = "SELECT u.grp, COUNT(*) AS n, SUM(g.dst) AS total FROM u JOIN g ON g.src = u.id GROUP BY u.grp"
CELLS = 2
WINDOW = 5
BEFORE = [
    *(Change("u", (f"group {number % 2}", number)) for number in range(4)),
    *(Change("g", (10 * number, number % 4)) for number in range(6)),
]
_PLACE = "/the/place/of/the/test"


def deltas(spark: SparkSession, feed: Feed) -> DataFrame:
    """A key, a window, two cells and a merge: all kinds of operators that keep state."""
    windows = {"g": {"rows": WINDOW}}
    return maintain(spark, SQL, feed.tables(spark), cells=CELLS, keys={"u": ["id"]}, windows=windows)


def run(spark: SparkSession, feed: Feed, place: Path) -> None:
    frame = deltas(spark, feed)
    writer = materialize(frame, checkpoint=str(place / "checkpoint"), parquet=str(place / "target"))
    run_to_end(writer.trigger(availableNow=True))


def unpack(archive: Path, place: Path) -> Feed:
    """Put what an archive holds at `place`, and return the feed of its stream."""
    with tarfile.open(archive) as packed:
        packed.extractall(place, filter="data")
    _move(place, _PLACE, str(place))
    return Feed.at(place / "in", Judge(SQL, SCHEMA))


def write(spark: SparkSession, archive: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory).resolve()
        feed = Feed(place / "in", Judge(SQL, SCHEMA))
        feed.write(BEFORE)
        run(spark, feed, place)
        _move(place, str(place), _PLACE)
        for checksum in place.rglob("*.crc"):
            checksum.unlink()
        with tarfile.open(archive, "w:xz") as packed:
            for part in ("in", "checkpoint", "target"):
                packed.add(place / part, part, filter=_anonymous)


def _move(place: Path, before: str, after: str) -> None:
    """Rename the directory in those of Spark's files that hold its path."""
    for file in (place / "checkpoint").rglob("[0-9]*"):
        if file.is_file() and {"sources", "_metadata"} & set(file.parts):
            file.write_text(file.read_text().replace(before, after))


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    session = configure(SparkSession.builder.master("local[2]"), cells=CELLS).getOrCreate()
    write(session, Path(sys.argv[1]))
    session.stop()
