"""Fixture files: blocks of a title, SQL and the expected text.

    == title
    SELECT ...
    -->
    expected

`CROWN_UPDATE_FIXTURES=1` writes what the code gives now; read the difference before you commit it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "fixtures"
WRITE = bool(os.environ.get("CROWN_UPDATE_FIXTURES"))


@dataclass(frozen=True)
class Fixture:
    title: str
    sql: str
    expected: str


def read(name: str) -> list[Fixture]:
    blocks = (FOLDER / name).read_text().split("== ")[1:]
    found = []
    for block in blocks:
        title, _, rest = block.partition("\n")
        sql, _, expected = rest.partition("\n-->")
        found.append(Fixture(title.strip(), sql.strip(), expected.strip("\n")))
    return found


def write(name: str, fixtures: list[Fixture]) -> None:
    blocks = [f"== {f.title}\n{f.sql}\n-->\n{f.expected}\n" for f in fixtures]
    (FOLDER / name).write_text("\n".join(blocks))
