"""Keys of a pipeline's file, for messages."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass

from crown.errors import SchemaError


@dataclass(frozen=True)
class FileKey:
    """A key of a file, for messages."""

    file: str
    key: str = ""

    def at(self, key: str) -> FileKey:
        return FileKey(self.file, f"{self.key}.{key}" if self.key else key)

    def fault(
        self, what: str, *, code: str = "VALUE", hint: str | None = None, reason: str | None = None
    ) -> SchemaError:
        where = f"{self.file}: {self.key} " if self.key else f"{self.file} "
        return SchemaError(where + what, code=f"CROWN-PIPELINE-{code}", reason=reason, hint=hint)

    def missing(self, key: str, hint: str | None = None) -> SchemaError:
        where = f"{self.file}: {self.key}" if self.key else self.file
        return SchemaError(f"{where} has no {key}", code="CROWN-PIPELINE-MISSING", hint=hint)


def closest(word: str, known: Collection[str]) -> str:
    """
    >>> closest("cvs", ["csv", "json"])
    "did you mean 'csv'? "
    """
    found = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {found[0]!r}? " if found else ""
