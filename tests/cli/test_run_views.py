"""`crown run` with several views: `[views.NAME]` or a folder of SQL files, checked as a whole before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from crown.errors import CrownError, SchemaError, SqlError
from crown.spark.pipeline import Pipeline
from tests.cli.conftest import Refused, checked_without_spark

GOOD = """
checkpoint = "checkpoint"
cells = 2
master = "local[2]"

[tables.g]
format = "parquet"
path = "in"
schema = "src BIGINT, dst BIGINT"
rows = 1000000

[views.best]
query = "SELECT src, n FROM degrees ORDER BY n DESC, src LIMIT 3"

[views.degrees]
file = "degrees.sql"

[views.hops]
query = "SELECT a.src, b.dst FROM edges a JOIN edges b ON a.dst = b.src"
sink = {format = "kafka", servers = "h:1", topic = "hops", key = "src"}

[views.edges]
query = "SELECT * FROM g"

[sink]
format = "materialized"
path = "out/{view}"
views = ["best", "degrees"]

[spark]
"spark.jars.packages" = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"
"""
FOLDER = """
checkpoint = "checkpoint"
dialect = "duckdb"
views = "models"

[tables.raw_orders]
format = "parquet"
path = "in"
schema = "id BIGINT, customer BIGINT"

[sink]
format = "materialized"
path = "out/{view}"
"""
MODELS = {
    "staging/stg_orders.sql": 'select id as order_id, customer from "dev"."main"."raw_orders"\n',
    "marts/orders.sql": """-- a comment
        with orders as (select * from "dev"."main"."stg_orders") select "orders"."order_id" from "orders";
    """,
    "marts/and_orders.sql": """
        with orders as (select 7 as order_id) select o.order_id from main.orders as o, orders where o.order_id > 7
    """,
    "schema.yml/not_null_orders.sql": "select * from nowhere where order_id is null",
    ".ipynb/orders.sql": "nothing",
}


def write(directory: Path, text: str = GOOD) -> Path:
    (directory / "in").mkdir(exist_ok=True)
    (directory / "degrees.sql").write_text("SELECT src, COUNT(*) AS n FROM g GROUP BY src;\n")
    file = directory / "pipeline.toml"
    file.write_text(text)
    return file


def write_models(directory: Path, models: dict[str, str], text: str = FOLDER) -> Path:
    for name, sql in models.items():
        (directory / "models" / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / "models" / name).write_text(sql)
    return write(directory, text)


def test_check_shows_every_view_and_leaves_nothing(tmp_path: Path) -> None:
    file = write(tmp_path)
    shown = checked_without_spark(file)
    for words in (
        *("VIEW best", "VIEW degrees", "VIEW hops", "GUARANTEE", "1,000,000 rows (declared)", "DELIVERY", "can run"),
        f"best               materialized {tmp_path / 'out' / 'best'}, exactly once",
        "hops               kafka hops, at least once",
        "edges              not written: expanded where other views read it",
    ):
        assert words in shown, shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["degrees.sql", "in", "pipeline.toml"]


def test_views_have_their_sinks_and_the_rest_are_names(tmp_path: Path) -> None:
    pipeline = Pipeline.read(write(tmp_path))
    assert not pipeline.alone
    assert list(pipeline.names) == ["edges"]
    assert {name: sink.where for name, sink in pipeline.written.items()} == {
        "best": str(tmp_path / "out" / "best"),
        "degrees": str(tmp_path / "out" / "degrees"),
        "hops": "hops",
    }


def test_the_state_is_that_of_all_views_together(tmp_path: Path) -> None:
    from crown.cli.budget import measure

    two = GOOD.replace(
        "[views.edges]", '[views.again]\nquery = "SELECT src, COUNT(*) FROM g GROUP BY src"\n[views.edges]'
    )
    sizes = []
    for text in (GOOD, two.replace('views = ["best"', 'views = ["again", "best"')):
        pipeline = Pipeline.read(write(tmp_path, text))
        budget = measure(pipeline.check(), pipeline)
        assert budget is not None
        sizes.append(budget.tables[0].bytes_per_row)
    assert sizes[1] < 1.1 * sizes[0], "an equal view is kept once"


def more(sink: str) -> str:
    return f'[views.more]\nquery = "SELECT 1 AS x"\nsink = {{{sink}}}\n[views.edges]'


MISTAKES = {
    "a query beside views": ("cells = 2", 'cells = 2\nquery = "SELECT 1"', ["views is given beside query"]),
    "no view": ('views = ["best", "degrees"]', "views = []", ["sink.views is []"]),
    "an unknown option of a view": ("file =", "flie =", ["views.degrees.flie is not an option", "did you mean 'file'"]),
    "neither query nor file": ('file = "degrees.sql"', "", ["views.degrees has no query"]),
    "both query and file": ("file =", 'query = "SELECT 1"\nfile =', ["views.degrees has no query", "either"]),
    "a file that is not there": ("degrees.sql", "degres.sql", ["views.degrees.file is 'degres.sql'", "No such file"]),
    "a name of a table": ("[views.edges]", "[views.G]", ["views.G.query", "there is a table of that name: tables.G"]),
    "a name twice": ("[views.edges]", "[views.HOPS]", ["views.HOPS is defined twice"]),
    "a name that is a path": ("[views.edges]", '[views."../x"]', ["views", "'../x'"]),
    "a view that is no table": ("[views.edges]", "[views]\nedges = 3\n[views.x]", ["views.edges is 3"]),
    "a circle": ("FROM g GROUP", "FROM g GROUP", []),
    "an unknown option of a sink": ('topic = "hops"', 'topik = "hops"', ["views.hops.sink.topik"]),
    "no place for the name": ("out/{view}", "out", ["sink.path is the same for 2 views: best, degrees", "{view}"]),
    "a view in the list that is none": (
        '"best", "degrees"]',
        '"best", "degres"]',
        ["sink.views", "'degres'", "degrees"],
    ),
    "a key that is no column": ('key = "src"', 'key = "scr"', ["views.hops.sink.key", "'scr'", "'src'"]),
    "a view that nobody sees": ('views = ["best", "degrees"]', 'views = ["degrees"]', ["best", "without a sink"]),
    "a typo in a query": ("SELECT src, n FROM", "SELCT src, n FROM", ["views.best.query can't be used", "SELCT"]),
    "a column that is not there": ("SELECT a.src", "SELECT a.scr", ["views.hops.query", "scr", "^"]),
    "a column that a view lacks": ("SELECT src, n FROM degrees", "SELECT src, m FROM degrees", ["views.best", "m"]),
    "a table that is not there": ("* FROM g", "* FROM h", ["views.edges.query", "h"]),
    "a sink in a source": ('"out/{view}"', '"in/{view}"', ["sink.path", "inside the path of tables.g.path"]),
    "one topic for two": (
        "[views.edges]",
        more('format = "kafka", servers = "h:1", topic = "hops"'),
        ["views.more.sink", "the target of view hops"],
    ),
    "one path inside another": (
        "[views.edges]",
        more('format = "json", path = "out/best/x"'),
        ["views.more.sink.path", "inside that of view best"],
    ),
    "what holds one view": ("[views.edges]", more('format = "memory"'), ["views.more.sink.format"]),
    "an unknown dialect": ("cells = 2", 'dialect = "postgre"', ["dialect is 'postgre'", "did you mean 'postgres'"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named_before_spark_starts(tmp_path: Path, name: str, refused: Refused) -> None:
    old, new, words = MISTAKES[name]
    assert old in GOOD or name == "a circle"
    file = write(tmp_path, GOOD.replace(old, new, 1))
    if name == "a circle":
        (tmp_path / "degrees.sql").write_text("SELECT src, n FROM best")
        words = ["in a circle: best reads degrees reads best", "views.best.query"]
    refused(file, words)


def test_a_folder_of_compiled_models_runs_as_it_is(tmp_path: Path) -> None:
    pipeline = Pipeline.read(write_models(tmp_path, MODELS))
    assert sorted(pipeline.maintained) == ["and_orders", "orders", "stg_orders"]
    checked = pipeline.check()
    assert [column.name for column in checked.explanations[0].plan.columns] == ["order_id"]
    assert [table.name for table in checked.explanations[0].plan.tables] == ["raw_orders"]
    assert checked.unread == ()


FOLDER_MISTAKES = {
    "no folder": ({}, "views is 'models', which is not a folder"),
    "nothing in it": ({"readme.md": ""}, "without .sql files"),
    "a template": ({"a.sql": "select * from {{ ref('raw_orders') }}"}, r"models/a.sql, a template[\s\S]*dbt compile"),
    "one name twice": ({"x/a.sql": "select 1", "y/A.sql": "select 2"}, "x/a.sql and models/y/A.sql"),
    "an empty file": ({"a.sql": " \n"}, "models/a.sql, which is empty"),
    "two statements": ({"a.sql": "select 1; select 2"}, "models/a.sql can't be used: the text has 2 statements"),
    "not a query": ({"a.sql": "drop table x"}, "models/a.sql can't be used"),
    "the name of a table": ({"raw_orders.sql": "select 1"}, "models/raw_orders.sql is the view raw_orders"),
    "itself": ({"a.sql": "select max(x) as x from main.a"}, "in a circle: a reads a"),
}


@pytest.mark.parametrize("name", FOLDER_MISTAKES)
def test_mistakes_in_a_folder(tmp_path: Path, name: str) -> None:
    models, message = FOLDER_MISTAKES[name]
    with pytest.raises((SchemaError, SqlError), match=message):
        Pipeline.read(write_models(tmp_path, models)).check()


def test_an_unknown_sink_is_named(tmp_path: Path) -> None:
    file = write_models(tmp_path, MODELS, FOLDER.replace("materialized", "materialised"))
    with pytest.raises(SchemaError, match=r"sink.format is 'materialised'[\s\S]*did you mean 'materialized'"):
        Pipeline.read(file).check()


def test_a_sink_is_needed(tmp_path: Path) -> None:
    with pytest.raises(CrownError, match=r"has no sink[\s\S]*views.NAME.sink"):
        Pipeline.read(write_models(tmp_path, MODELS, FOLDER[: FOLDER.index("[sink]")]))


def test_a_single_view_is_one_of_several(tmp_path: Path) -> None:
    pipeline = Pipeline.read(write_models(tmp_path, {"only.sql": "select id from raw_orders"}))
    assert not pipeline.alone
    assert list(pipeline.written) == ["only"]
    assert pipeline.check().plan is not None
