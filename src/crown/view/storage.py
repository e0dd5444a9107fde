"""Saved views: one file that holds the plan, how the view was made, and the kernel's state in chunks.

The file is a ZIP archive without compression, so any tool can look into it and every part has a checksum.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crown.errors import StateError

_FORMAT = 2  # 1 had columns computed by SQL text


def write(path: str | os.PathLike[str], about: Mapping[str, Any], state: Mapping[str, list[bytes]]) -> None:
    """Writes beside `path` first, so that a failure leaves no half file there."""
    target = Path(path)
    partial = target.with_name(f"{target.name}.partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("view.json", json.dumps({"format": _FORMAT, **about}))
        for part, chunks in state.items():
            for number, chunk in enumerate(chunks):
                archive.writestr(f"state/{part}/{number:06d}.arrow", chunk)
    os.replace(partial, target)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, list[bytes]]]:
    try:
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read("view.json"))
            state: dict[str, list[bytes]] = {}
            for name in sorted(name for name in archive.namelist() if name.startswith("state/")):
                _, part, _ = name.split("/")
                state.setdefault(part, []).append(archive.read(name))
    except (OSError, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise StateError(
            f"{os.fspath(path)} is not a saved view",
            code="CROWN-STATE-CORRUPT",
            reason=str(error),
            hint="give a file that View.save wrote",
        ) from error
    if about.get("format") != _FORMAT:
        raise StateError(
            f"{os.fspath(path)} has format {about.get('format')!r}; this version reads {_FORMAT}",
            code="CROWN-STATE-FORMAT",
            hint="make the view again from its SQL, load the tables and save it",
        )
    return about, state
