"""Crown's own message out of the long text in which Spark wraps an error of a Python worker."""

from __future__ import annotations

import re

from crown.errors import StateError

_MESSAGE = re.compile(
    r"\[(CROWN-[A-Z0-9-]+)\] (.*?)(?=\n\s*(?:at |\"\"\"|SQLSTATE|JVM stacktrace|=== )|\n\n|\Z)", re.DOTALL
)


def crown_error(text: str, *, what: str = "the query failed") -> StateError:
    """Return the error in which something of Spark's ended: Crown's own where there is one, else Spark's first line.

    >>> print(crown_error("Job aborted: crown.errors.StateError: [CROWN-FILE] cell 3: no\\nwhy: because\\n\\n at j"))
    [CROWN-FILE] cell 3: no
    why: because
    """
    found = _MESSAGE.search(text)
    if found is None:
        lines = text.strip().splitlines() or ["unknown error"]
        return StateError(f"{what}: {lines[0]}", code="CROWN-SPARK-QUERY")
    return StateError(found[2].strip(), code=found[1])
