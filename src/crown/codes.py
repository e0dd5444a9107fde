"""Every error code of Crown: what it means and what to do about it. docs/errors.md is generated from this table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Code(NamedTuple):
    """One sentence each. The message of an error adds the place, the values and the names."""

    meaning: str
    remedy: str


CODES: Mapping[str, Code] = {
    "CROWN-SQL-AGGREGATE-ARGUMENTS": Code(
        "An aggregate function has more arguments than it takes.", "Aggregate one expression, or concatenate first."
    ),
    "CROWN-SQL-AGGREGATE-FUNCTION": Code(
        "The aggregate function, or a modifier inside it, is not supported.",
        "Use COUNT, SUM, AVG, MIN, MAX or the other functions listed in docs/sql.md.",
    ),
    "CROWN-SQL-AGGREGATE-PLACE": Code(
        "An aggregate function is used in WHERE, ON, GROUP BY or inside another aggregate.",
        "Use HAVING, or aggregate in a subquery.",
    ),
    "CROWN-SQL-AMBIGUOUS-COLUMN": Code("Several tables have a column of this name.", "Qualify it with its table."),
    "CROWN-SQL-COLUMN-ALIASES": Code(
        "A list of column names has the wrong length, or names a column twice.", "Give one name for each column."
    ),
    "CROWN-SQL-CORRELATED-SUBQUERY": Code(
        "A subquery refers to the query around it where it may not.",
        "Join with the outer table inside the subquery, or write the subquery as a join.",
    ),
    "CROWN-SQL-DIALECT": Code("The SQL dialect is unknown.", "Use a dialect of sqlglot, such as 'spark'."),
    "CROWN-SQL-DUPLICATE-ALIAS": Code(
        "Two tables in FROM, or two queries of WITH, have the same name.", "Give each its own name."
    ),
    "CROWN-SQL-GROUPING-SETS": Code(
        "The grouping sets are not supported, or GROUPING is used without them.", "List the groupings in GROUPING SETS."
    ),
    "CROWN-SQL-IN-COLUMNS": Code(
        "The two sides of IN have different numbers of columns.", "Select as many columns as the left side has."
    ),
    "CROWN-SQL-INTERVAL": Code(
        "The interval is not understood, or too long.", "Write INTERVAL '3' DAY or INTERVAL '1-2' YEAR TO MONTH."
    ),
    "CROWN-SQL-INTO": Code("SELECT INTO is not supported.", "Write the changes of the view to the table."),
    "CROWN-SQL-JOIN-KIND": Code("This kind of join is not supported.", "Use INNER JOIN or an OUTER JOIN ... ON."),
    "CROWN-SQL-LATERAL": Code("This LATERAL VIEW is not supported.", "Use explode or posexplode of an array."),
    "CROWN-SQL-LIMIT": Code("LIMIT or OFFSET is not a whole number.", "Write LIMIT 10 OFFSET 20."),
    "CROWN-SQL-LITERAL": Code("A literal is malformed, or out of the range of its type.", "Correct the literal."),
    "CROWN-SQL-LOCK": Code("FOR UPDATE and FOR SHARE are not supported.", "Remove them."),
    "CROWN-SQL-MATCH-RECOGNIZE": Code("MATCH_RECOGNIZE is not supported.", "Write the pattern as joins."),
    "CROWN-SQL-NON-DETERMINISTIC": Code(
        "The value of a function does not only depend on its arguments.", "Store the value in a column of a table."
    ),
    "CROWN-SQL-NOT-A-QUERY": Code("The statement is not a query.", "Give a SELECT, or a UNION, EXCEPT or INTERSECT."),
    "CROWN-SQL-NOT-GROUPED": Code(
        "A column is neither in GROUP BY nor inside an aggregate.", "Add it to GROUP BY, or aggregate it."
    ),
    "CROWN-SQL-ORDER-NOT-OUTPUT": Code(
        "ORDER BY uses an expression that is not in the output.", "Add the expression to SELECT."
    ),
    "CROWN-SQL-ORDINAL": Code("There is no output column at this position.", "Use a position of the SELECT list."),
    "CROWN-SQL-PATTERN": Code(
        "A pattern or a number of digits is not a literal, or is not supported.",
        "Write it as a literal, in the syntax of Java.",
    ),
    "CROWN-SQL-PIVOT": Code(
        "The columns of PIVOT are not written in the query.", "List its values, or write SUM(CASE WHEN ... END)."
    ),
    "CROWN-SQL-RECURSION": Code(
        "A recursive query is not of the form that can be maintained, or a view refers to itself.",
        "Write WITH RECURSIVE r AS (base UNION [ALL] step), where the step joins r once.",
    ),
    "CROWN-SQL-RESERVED-NAME": Code(
        "A column has a name that changes and deltas use, such as _change_type.",
        "Rename the column with AS.",
    ),
    "CROWN-SQL-SAMPLE": Code("TABLESAMPLE is not supported.", "Filter on a hash of the key."),
    "CROWN-SQL-SCALAR-SUBQUERY": Code(
        "A scalar subquery may return no row or several.", "Aggregate without GROUP BY inside it, or write a join."
    ),
    "CROWN-SQL-SET-OPERATION": Code(
        "The two sides of a set operation do not match, or columns would be matched by name.",
        "Select the same number of columns, with matching types, in the same order.",
    ),
    "CROWN-SQL-SORT": Code("CLUSTER BY, DISTRIBUTE BY and SORT BY are not supported.", "Use ORDER BY, or remove them."),
    "CROWN-SQL-STAR": Code("* is not allowed here.", "Name the columns."),
    "CROWN-SQL-STATEMENTS": Code("The text is not exactly one statement.", "Give one statement."),
    "CROWN-SQL-STRUCT": Code("SELECT AS STRUCT and AS VALUE are not supported.", "Select the columns."),
    "CROWN-SQL-SUBQUERY-PLACE": Code(
        "EXISTS, IN (SELECT ...) or a scalar subquery is not supported in this place.",
        "Move it into WHERE, or write it as a join.",
    ),
    "CROWN-SQL-SYNTAX": Code("The query is not valid SQL.", "Correct the text at the caret."),
    "CROWN-SQL-TABLE-FUNCTION": Code(
        "The function in FROM is not supported, or a SELECT has a second function that returns rows.",
        "Put the rows into a table, or write both functions in FROM.",
    ),
    "CROWN-SQL-TIME-WINDOW": Code(
        "A time window (TUMBLE, HOP, window) is not understood or not supported.",
        "Write TUMBLE(ts, INTERVAL '10' MINUTE) in GROUP BY, or window_start of TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), "
        "INTERVAL '10' MINUTE)).",
    ),
    "CROWN-SQL-TIME-TRAVEL": Code("AS OF is not supported.", "Remove it: a view follows the current tables."),
    "CROWN-SQL-TOO-DEEP": Code("The query is nested too deeply.", "Split it with WITH or views."),
    "CROWN-SQL-TOO-LONG": Code(
        "The query has too many operators, functions or constants.",
        "Write a long list as IN (...), or join with a table.",
    ),
    "CROWN-SQL-TOO-MANY-BRANCHES": Code(
        "Outer joins, unions and ORs in FROM multiply to too many cases.", "Split the query into several views."
    ),
    "CROWN-SQL-TUPLE": Code("A row is compared with a single value.", "Compare the columns one by one."),
    "CROWN-SQL-TYPE-CLASH": Code("The types of two values do not match.", "Convert one of them with CAST."),
    "CROWN-SQL-UNKNOWN-COLUMN": Code("No table in FROM has this column.", "Correct the name, or the schema."),
    "CROWN-SQL-UNKNOWN-FUNCTION": Code(
        "The function does not exist or is not supported.", "Use a function listed in docs/sql.md."
    ),
    "CROWN-SQL-UNKNOWN-TABLE": Code(
        "There is no table, view or alias of this name.", "Correct the name, or add the table to the schema."
    ),
    "CROWN-SQL-UNKNOWN-TYPE": Code("The type is not supported.", "Use a type listed in docs/sql.md."),
    "CROWN-SQL-UNSUPPORTED": Code("The construct is not supported.", "Remove it, or write it as the message says."),
    "CROWN-SQL-WINDOW": Code(
        "The WINDOW of a table is not understood, or does not fit its column.",
        "Write WINDOW (ROWS 1000) or WINDOW (RANGE INTERVAL 1 DAY ON ts) after the table.",
    ),
    "CROWN-SQL-WINDOW-FUNCTION": Code(
        "The window function is not supported here, or its frame is not.",
        "Use the functions and frames that docs/sql.md lists.",
    ),
    "CROWN-SCHEMA-DUPLICATE": Code("A table or column is defined twice.", "Remove or rename one of them."),
    "CROWN-SCHEMA-EMPTY": Code("The schema has no table, or a table has no columns.", "Define at least one of each."),
    "CROWN-SCHEMA-FILE": Code("The schema file can't be read.", "Check the path and the permissions."),
    "CROWN-SCHEMA-KEY": Code(
        "A primary key is defined twice, or names a column that does not exist or can't be in a key.",
        "Write PRIMARY KEY (a, b) once.",
    ),
    "CROWN-SCHEMA-KIND": Code(
        "The object is not a schema.", "Give CREATE TABLE text, a dict of columns, or an Arrow or Spark schema."
    ),
    "CROWN-SCHEMA-MISSING": Code(
        "No schema was given for the query.", "Give --schema, or put CREATE TABLE statements before the query."
    ),
    "CROWN-SCHEMA-OPTION": Code(
        "An option, update profile or window is unknown, or names a table that does not exist.",
        "Use an option listed in docs/sql.md.",
    ),
    "CROWN-SCHEMA-STATEMENT": Code(
        "The schema has a statement other than CREATE TABLE and CREATE VIEW.", "Remove the statement."
    ),
    "CROWN-SCHEMA-SYNTAX": Code("The schema is not valid SQL.", "Correct the text at the caret."),
    "CROWN-SCHEMA-TYPE": Code(
        "The type of a column is not supported.", "Use a type listed in docs/sql.md, or leave the column out."
    ),
    "CROWN-SCHEMA-UNSUPPORTED": Code(
        "A column constraint or table option is not supported, and ignoring it would change results.", "Remove it."
    ),
    "CROWN-SCHEMA-VIEW": Code("A view in the schema has no query.", "Write CREATE VIEW name AS SELECT ..."),
    "CROWN-PLAN-CELLS": Code(
        "The number of cells is missing, less than 1 or too large.", "Give cells=; explain suggests a number."
    ),
    "CROWN-PLAN-DEPTH": Code("An expression is nested too deeply.", "Split the expression over subqueries."),
    "CROWN-PLAN-EXPLAIN": Code(
        "The view was made from a plan, not from SQL.", "Create the view from SQL and a schema."
    ),
    "CROWN-PLAN-JSON": Code("The text is not the JSON form of a plan.", "Write plans with crown.plan.to_json."),
    "CROWN-PLAN-MALFORMED": Code(
        "The parts of a plan contradict each other.",
        "Plan the query again; report it as a bug if the plan was not edited.",
    ),
    "CROWN-PLAN-REGEX": Code(
        "A regular expression is invalid or not supported.", "Use the syntax that docs/sql.md lists."
    ),
    "CROWN-PLAN-TIME-PATTERN": Code(
        "A date and time pattern is invalid or not supported.", "Use the letters that docs/sql.md lists."
    ),
    "CROWN-PLAN-TOO-MANY-TABLES": Code(
        "The query joins too many tables, or reads its tables too often.",
        "Split the query into several views.",
    ),
    "CROWN-PLAN-VERSION": Code(
        "The plan was written in another format than this version of Crown reads.", "Plan the query again."
    ),
    "CROWN-CHANGE-ABSENT": Code(
        "A deleted row is not in the table.",
        "Correct the changes, or set on_invalid='quarantine' to skip such changes.",
    ),
    "CROWN-CHANGE-ARROW": Code(
        "The Arrow data is malformed or can't be read.", "Write it with another library or version, or give rows."
    ),
    "CROWN-CHANGE-COLUMN": Code(
        "A column is missing, given twice, or not in the table.", "Name the columns as the schema does."
    ),
    "CROWN-CHANGE-DIFFERS": Code(
        "A deleted row has the primary key of a stored row but other values.",
        "Give the key alone (NULL elsewhere), or the stored row.",
    ),
    "CROWN-CHANGE-MALFORMED": Code(
        "A record of a stream can't be decoded.",
        "Correct the source, or set on_invalid='quarantine' to skip such records.",
    ),
    "CROWN-CHANGE-NULL": Code(
        "A column declared NOT NULL, of a primary key or of a window is NULL.", "Give a value, or relax the schema."
    ),
    "CROWN-CHANGE-PROFILE": Code(
        "A change contradicts the update profile of its table.", "Declare the table arbitrary, or fifo."
    ),
    "CROWN-CHANGE-SIZE": Code("One batch has too many changes.", "Apply the changes in several batches."),
    "CROWN-CHANGE-TABLE": Code("The view does not read a table of this name.", "Correct the name."),
    "CROWN-CHANGE-TYPE": Code(
        "The type of a value or column does not match the schema.", "Convert it, or correct the schema."
    ),
    "CROWN-CHANGE-VALUE": Code(
        "A value is out of the range of its column, or a multiplicity is not allowed.", "Correct the value."
    ),
    "CROWN-CHANGE-CLOCK": Code(
        "The query uses now(), and the view has no time yet.", "Call view.advance(datetime) first."
    ),
    "CROWN-CHANGE-WINDOW": Code(
        "There is no time to advance: the table has no time window, or the query does not read now().",
        "Declare WINDOW (RANGE ...) for the table.",
    ),
    "CROWN-STATE-BROKEN": Code(
        "A failed batch could not be rolled back, so the view is inconsistent.", "Load the view from its last copy."
    ),
    "CROWN-STATE-CORRUPT": Code(
        "A saved view or the state in a checkpoint is damaged or incomplete.", "Restore it from a copy, or start again."
    ),
    "CROWN-STATE-FORMAT": Code(
        "The saved view has a format that this version of Crown does not read.",
        "Load it with the version that wrote it, or create the view again.",
    ),
    "CROWN-STATE-NONE": Code(
        "The checkpoint does not contain the view.", "Wait for the first batch with changes, or correct the path."
    ),
    "CROWN-STATE-OTHER-PLAN": Code(
        "The saved state belongs to another query, schema, window or number of cells.",
        "Go back to what it was made with, or use a new checkpoint and a new target.",
    ),
    "CROWN-STATE-VIEWS": Code("The checkpoint contains several views.", "Name one with sql=."),
    "CROWN-STATE-WRITE": Code("The view can't be saved.", "Give a path in a directory that can be written to."),
    "CROWN-SPARK-BOUNDED": Code("A table is a stream where a batch is expected.", "Use crown.spark.maintain."),
    "CROWN-SPARK-FUNCTION": Code(
        "A Python function can't be computed on Spark.",
        "Call it with columns of one table, in a subquery or view over that table, or use crown.View.",
    ),
    "CROWN-SPARK-QUERY": Code("Spark stopped the stream with an error.", "Read the message and Spark's log."),
    "CROWN-SPARK-REJECTS": Code("on_invalid='quarantine' has no place to write to.", "Give rejects='path'."),
    "CROWN-SPARK-REALTIME": Code(
        "The query can't run in Spark's real-time mode, or was not made for it.",
        "Give maintain real_time=True and do what the message says, or use micro-batches.",
    ),
    "CROWN-SPARK-SETTING": Code(
        "A setting of the Spark session is not supported, or would change results.",
        "Build the session with crown.spark.configure, or set what the message says.",
    ),
    "CROWN-JVM-JAR": Code(
        "The running session does not accept Crown's jar.", "Start the session with crown.spark.configure."
    ),
    "CROWN-JVM-LIBRARY": Code(
        "An executor can't unpack the kernel.", "Make java.io.tmpdir of the executors writable and large enough."
    ),
    "CROWN-JVM-MEMORY": Code(
        "The engines of an executor need more memory than they may use.",
        "Use more executors or more memory, or raise spark.crown.memory.",
    ),
    "CROWN-JVM-PLATFORM": Code(
        "The jar has no kernel for the platform of the executors.", "Install a wheel that was built on that platform."
    ),
    "CROWN-JVM-UNAVAILABLE": Code(
        "The engines can't run in the JVM of this session.", "Install a JDK and run make setup, or use Python workers."
    ),
    "CROWN-SPARK-TABLE": Code("A table of the query has no DataFrame.", "Add the table to tables=."),
    "CROWN-SOURCE-FEED": Code(
        "The DataFrame is not a change feed.", "Read the Delta table with the option readChangeFeed."
    ),
    "CROWN-SOURCE-FILE": Code(
        "A file of changes can't be read.", "Move complete files in, and keep them until their batch is done."
    ),
    "CROWN-SOURCE-OPTION": Code(
        "An option of a source is unknown or has a wrong value.", "Use a value in the message."
    ),
    "CROWN-SOURCE-TYPE": Code(
        "The type of a column can't be read from this source, or does not match the schema.", "Correct the schema."
    ),
    "CROWN-SINK-AHEAD": Code(
        "The target already contains later batches of this checkpoint.", "Restore the checkpoint, or overwrite."
    ),
    "CROWN-SINK-BEHIND": Code(
        "The target lacks batches that this checkpoint has already written.", "Restore the target, or start again."
    ),
    "CROWN-SINK-CHANGED": Code(
        "Somebody else has changed the target table.", "Let only Crown write to it; start again with overwrite=True."
    ),
    "CROWN-SINK-COLUMNS": Code(
        "The columns of the target and of the view differ, or two have the same name.", "Rename or cast them with AS."
    ),
    "CROWN-SINK-CONNECTION": Code(
        "The PostgreSQL server can't be reached.", "Start the server, then start the stream again."
    ),
    "CROWN-SINK-CORRUPT": Code(
        "The files of a Parquet target do not add up.", "Restore the target from a copy, or start again."
    ),
    "CROWN-SINK-DELTAS": Code(
        "The DataFrame does not contain deltas of a view.", "Give what crown.spark.maintain returns."
    ),
    "CROWN-SINK-EMPTY": Code("The Parquet target has no version yet.", "Wait for the first batch."),
    "CROWN-SINK-KEY": Code("The key of a Kafka sink is not a column of the view.", "Name columns of the view."),
    "CROWN-SINK-NAME": Code("PostgreSQL does not accept the name of a table or column.", "Choose another name."),
    "CROWN-SINK-OTHER": Code(
        "The target belongs to another stream, or was not written by Crown.",
        "Use a new target, or materialize(..., overwrite=True).",
    ),
    "CROWN-SINK-POSTGRES": Code(
        "PostgreSQL rejects a statement, the target is not a plain table, or the server is too old.",
        "Correct what the message says, then start the stream again.",
    ),
    "CROWN-SINK-SCHEMA": Code("The schema for the target table does not exist.", "Create it, or name another."),
    "CROWN-SINK-TARGET": Code("materialize has no target, or two.", "Give either parquet= or postgres= and table=."),
    "CROWN-SINK-TYPE": Code("The target can't store a column of this type.", "Cast the column, or leave it out."),
    "CROWN-SINK-VALUE": Code("The target can't store a value.", "Replace such values in the query."),
    "CROWN-SINK-VERSION": Code(
        "The Parquet target does not have this version.", "Read a version that the message lists."
    ),
    "CROWN-ENGINE-TAKEN": Code(
        "Another attempt of the same task uses the engine of the cell.",
        "Nothing: Spark retries the task. Turn speculation off if it happens often.",
    ),
    "CROWN-HOST-DIED": Code(
        "The engine host died, most often because it ran out of memory.",
        "Raise CROWN_HOST_MEMORY, or use more cells.",
    ),
    "CROWN-HOST-DIRECTORY": Code(
        "The engine host has no private directory.", "Set TMPDIR to a directory that only you can write to."
    ),
    "CROWN-HOST-MEMORY": Code(
        "A cell does not fit into the memory of the engine host.", "Raise CROWN_HOST_MEMORY, or use more cells."
    ),
    "CROWN-HOST-PROTOCOL": Code(
        "The running engine host belongs to another version of Crown.", "Restart the application."
    ),
    "CROWN-HOST-START": Code(
        "The engine host did not start.",
        "Check that `python -m crown.spark.host --help` works on the machine of the executor.",
    ),
    "CROWN-PIPELINE-CONNECTOR": Code(
        "A source or sink needs a connector that is not installed.", "Name it in [spark], or install the package."
    ),
    "CROWN-PIPELINE-FILE": Code(
        "The pipeline file, or a file it names, can't be read.", "Check the path, and the TOML syntax."
    ),
    "CROWN-PIPELINE-MISSING": Code("A required key is missing.", "Add the key."),
    "CROWN-PIPELINE-OPTION": Code("A key is unknown.", "Use a key that the message lists."),
    "CROWN-PIPELINE-PATH": Code(
        "A path does not exist, is used twice, or is not a directory.", "Create it, or name another."
    ),
    "CROWN-PIPELINE-SCHEMA": Code(
        "The columns of a table are malformed.", 'Write "id BIGINT, name STRING", and the key with key = ["id"].'
    ),
    "CROWN-PIPELINE-TABLE": Code("The definition of a table is not valid.", "Correct what the message says."),
    "CROWN-PIPELINE-VALUE": Code("The value of a key is not allowed.", "Use a value that the message lists."),
    "CROWN-ARGUMENT": Code("An argument has the wrong type or value.", "Use a value that the message lists."),
    "CROWN-BENCH": Code(
        "A benchmark does not exist, has no stored result, or can't run here.", "Run `crown bench list` in a checkout."
    ),
    "CROWN-CONSOLE-PORT": Code(
        "The console can't listen on the port.", "Choose another port, or 0 for any that is free."
    ),
    "CROWN-CAST": Code(
        "A value can't be cast to the type.", "Use TRY_CAST to get NULL instead, or filter such rows out first."
    ),
    "CROWN-CAST-UNSUPPORTED": Code("Spark can cast the value, but Crown can't.", "Rewrite such values upstream."),
    "CROWN-DATA-FILE": Code(
        "A graph or SNB file is missing or has the wrong format.", "Check the format in docs/workload.md."
    ),
    "CROWN-DIVIDE-BY-ZERO": Code("A division by zero.", "Write NULLIF(divisor, 0) to get NULL instead."),
    "CROWN-ARRAY-INDEX": Code(
        "An array has no element at the index.", "Use get(a, i) or try_element_at(a, i) to get NULL instead."
    ),
    "CROWN-MAP-KEY": Code("A map has a key twice, or NULL as a key.", "Make the keys of map(...) different."),
    "CROWN-FUNCTION-DECLARED": Code(
        "A Python function is not declared in a way that a query can call it.",
        "Give its types: `@crown.function(returns=..., arguments=[...])`, or annotate its arguments and its result.",
    ),
    "CROWN-FUNCTION-FAILED": Code(
        "A Python function raised an exception, or returned something that is not of its declared type.",
        "Handle these arguments in the function, or exclude the row in the query; the batch was not applied.",
    ),
    "CROWN-FUNCTION-MISSING": Code(
        "The plan calls a Python function that was not given.",
        "Pass it by its name: `functions={...}`. Saved views contain no code.",
    ),
    "CROWN-FUNCTION-REENTRANT": Code(
        "A Python function used a view while a view was calling it.",
        "Compute only from the arguments; pass other data as columns of a table.",
    ),
    "CROWN-FILE": Code("A file can't be read or written.", "Check the path and the permissions."),
    "CROWN-FORKED": Code(
        "The process was forked while another thread used the view.",
        "Fork while the view is idle, start processes with 'spawn', or load the view in the child.",
    ),
    "CROWN-FUNCTION": Code("A function is not defined for an argument.", "Filter such rows out, or correct them."),
    "CROWN-INTERNAL": Code("Crown failed; this is a bug.", "Please report it with the message and the query."),
    "CROWN-ITERATION": Code(
        "The view changed during an iteration over too many rows to keep a copy.", "Use to_arrow() instead."
    ),
    "CROWN-STREAM": Code("A stream of deltas is closed, or can't be read.", "Read it once, before it is closed."),
    "CROWN-LOG": Code("A log of updates can't be read, or does not fit the query.", "See docs/workload.md."),
    "CROWN-NOT-INSTALLED": Code("An optional package is not installed.", "Install it as the message says."),
    "CROWN-OVERFLOW": Code(
        "A value, a sum or a count is out of the range of its type.",
        "Cast to a wider type, such as DECIMAL(38, 0) or DOUBLE, before the arithmetic.",
    ),
    "CROWN-RECURSION-LIMIT": Code(
        "A recursive query has not come to an end after 10,000 rounds of one batch.",
        "Write UNION and compute no new values in the step, or bound the depth in its WHERE.",
    ),
    "CROWN-ROWS-NOT-KEPT": Code(
        "The rows that a table has so far are not stored, or not with all columns.",
        "Create the database with keep='all', or create the view before the table has rows.",
    ),
    "CROWN-SCALAR-ROWS": Code(
        "A scalar subquery returned more than one row.", "Aggregate in it, or compare with its key."
    ),
    "CROWN-TOO-MANY-ROWS": Code(
        "The result has more rows than can be counted or listed.",
        "Use to_arrow(multiplicity=True), or count in the query.",
    ),
    "CROWN-UTF8": Code(
        "A string that was cast from binary is not valid UTF-8.", "Filter such rows out, or keep the column binary."
    ),
    "CROWN-VIEW-UNKNOWN": Code("The database has no maintained view of this name.", "Create it, or correct the name."),
    "CROWN-VIEW-USED": Code("A view that others read can't be dropped.", "Drop the views that read it first."),
}
