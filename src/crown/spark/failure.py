"""Extract Crown's own message from the long text in which Spark wraps an error of a Python worker."""

from __future__ import annotations

import re

from crown.errors import StateError

_MESSAGE = re.compile(
    r"\[(CROWN-[A-Z0-9-]+)\] (.*?)(?=\n\s*(?:at |\"\"\"|JVM stacktrace|=== )|\s+SQLSTATE: \w{5}|\n\n|\Z)", re.DOTALL
)

# Spark's own: a file that it could not read, and any other error with its class in brackets.
_FILE = re.compile(r"\[FAILED_READ_FILE\.[A-Z_]+\] Encountered error while reading file (\S+?)\.?\s")
_CAUSE = re.compile(r"Caused by: [\w.$]+: ([^\n]+(?:\n(?!\s*(?:at |\.\.\.|Caused by))[^\n]+)*)")
_SPARK = re.compile(r"\[[A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*\] [^\n]+")


def crown_error(text: str, *, what: str = "the query failed") -> StateError:
    """Return the error that a Spark operation failed with: Crown's own if there is one, else Spark's first line.

    >>> print(crown_error("Job aborted: crown.errors.StateError: [CROWN-FILE] cell 3: no\\nwhy: because\\n\\n at j"))
    [CROWN-FILE] cell 3: no
    why: because
    >>> text = "Python Proxy. Traceback:\\n [FAILED_READ_FILE.NO_HINT] Encountered error while reading file f/a. State"
    >>> crown_error(text + "\\n\\tat j\\nCaused by: java.io.E: no header.\\n Header: 1\\n\\tat k").reason
    'no header. Header: 1'
    >>> print(crown_error("STREAM_FAILED: [CROWN-FILE] cell 3: no SQLSTATE: 39000 SQLSTATE: XXKST"))
    [CROWN-FILE] cell 3: no
    """
    if (found := _MESSAGE.search(text)) is not None:
        return StateError(found[2].strip(), code=found[1])
    if (file := _FILE.search(text)) is not None:
        causes = _CAUSE.findall(text)
        return StateError(
            f"{file[1]} can't be read",
            code="CROWN-SOURCE-FILE",
            reason=" ".join(causes[-1].split()) if causes else None,
            hint="move complete files in, and keep them until their batch is done; begin CSV files with the names of "
            'their columns, or give options={"header": False}',
        )
    named = _SPARK.search(text)
    lines = [named[0]] if named is not None else text.strip().splitlines() or ["unknown error"]
    return StateError(f"{what}: {lines[0]}", code="CROWN-SPARK-QUERY")
