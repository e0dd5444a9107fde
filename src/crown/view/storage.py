"""Saved views: one file that holds the plan, how the view was made, and the kernel's state in chunks.

The file is a ZIP archive without compression, so any tool can open it and every part has a checksum. A file may be
damaged or come from an untrusted source: everything is checked before it is used, and a file is never read into more
memory than it has bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote

from crown.errors import CrownError, StateError
from crown.ir.plan import Plan
from crown.plan.cells.layout import Layout

_FORMAT = 3
_OLDEST = 2  # has no layout: this version lays the view out again; 1 had columns computed by SQL text
_ABOUT = "view.json"
_CHUNK = re.compile(r"state/([^/]+)/([0-9]{6,9})\.arrow")


def write(path: str | os.PathLike[str], about: Mapping[str, Any], state: Mapping[str, list[bytes]]) -> None:
    """Replace the file at `path` atomically: after a crash it is either the old or the new one."""
    write_archive(path, _ABOUT, json.dumps({"format": _FORMAT, **about}), state)


def write_archive(path: str | os.PathLike[str], name: str, about: str, state: Mapping[str, list[bytes]]) -> None:
    """Write the description under its name, and the state by part."""
    target = Path(path)
    try:
        with _replacing(target) as file, _archive(file) as archive:
            archive.writestr(name, about)
            for part, chunks in state.items():
                for number, chunk in enumerate(chunks):
                    archive.writestr(f"state/{quote(part, safe='')}/{number:06d}.arrow", chunk)
    except OSError as error:
        raise StateError(
            f"the view can't be saved to {target}",
            code="CROWN-STATE-WRITE",
            reason=str(error),
            hint="give a path in a writable directory",
        ) from error


@contextlib.contextmanager
def _archive(file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Open a new archive in a file that is discarded if anything fails."""
    archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
    try:
        yield archive
    except BaseException:
        # Closing it would complain about the half-written member, and hide why it is half-written
        # (Ctrl-C).
        archive.fp = None
        raise
    archive.close()


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[IO[bytes]]:
    """Open a new file that replaces `target` once it is on disk, or is removed if anything fails."""
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a directory")
    # The name is unpredictable and must not exist, so no link can redirect the data.
    partial = target.with_name(f".crown-{secrets.token_hex(8)}.partial")
    descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode) & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    # The new name must survive a crash, too.
    directory = os.open(target.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextlib.contextmanager
def opening(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn any error from a damaged file into a `StateError`."""
    try:
        yield
    except StateError:
        raise
    except FileNotFoundError as error:
        raise StateError(f"there is no file {os.fspath(path)}", code="CROWN-FILE", hint="check the path") from error
    except CrownError as error:
        raise _corrupt(path, error.message) from error
    except Exception as error:
        raise _corrupt(path, f"{type(error).__name__}: {error}") from error


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, list[bytes]]]:
    """Return the description of a saved view, checked, and its state by part. Use within `opening`."""
    about, chunks = read_archive(path, _ABOUT)
    check_format(path, about, _OLDEST, _FORMAT)
    about.setdefault("layout", None)
    _check_about(path, about, chunks)
    return about, chunks


def read_archive(path: str | os.PathLike[str], name: str) -> tuple[dict[str, Any], dict[str, list[bytes]]]:
    """Return the description of that name, and the state by part. Use within `opening`."""
    # A pipe would block, and a device may never end.
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise _corrupt(path, "not a regular file")
    with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        size = os.fstat(file.fileno()).st_size
        members = archive.infolist()
        if len({member.filename for member in members}) != len(members):
            raise _corrupt(path, "a part appears twice")
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise _corrupt(path, "a part is compressed")
        if sum(member.file_size for member in members) > size:
            raise _corrupt(path, "its parts are larger than the file")
        if name not in archive.namelist():
            raise StateError(
                f"{os.fspath(path)} was not written by the class that loads it",
                code="CROWN-STATE-CORRUPT",
                reason="views and databases have different files",
                hint="open a view with View.load, and a database with Database.load",
            )
        about = json.loads(archive.read(name))
        state: dict[str, dict[int, bytes]] = {}
        for member in members:
            if member.filename == name:
                continue
            match = _CHUNK.fullmatch(member.filename)
            if match is None:
                raise _corrupt(path, f"{member.filename[:100]!r} is not a part of a view")
            state.setdefault(unquote(match[1]), {})[int(match[2])] = archive.read(member)
    if any(max(numbered) != len(numbered) - 1 for numbered in state.values()):
        raise _corrupt(path, "a chunk is missing")
    chunks = {part: [chunk for _, chunk in sorted(numbered.items())] for part, numbered in state.items()}
    return about, chunks


def check_format(path: str | os.PathLike[str], about: object, oldest: int, newest: int) -> None:
    """Raise `StateError` unless this version reads the format of a description."""
    found = about.get("format") if isinstance(about, dict) else about
    if type(found) is int and oldest <= found <= newest:
        return
    raise StateError(
        f"{os.fspath(path)} has format {str(found)[:100]}; this version reads {oldest} to {newest}",
        code="CROWN-STATE-FORMAT",
        hint="load it with the version of Crown that saved it, or a newer one"
        if type(found) is int and found > newest
        else "create the view again from SQL, load its tables and save it",
    )


def _check_about(path: str | os.PathLike[str], about: dict[str, Any], state: Mapping[str, list[bytes]]) -> None:
    cells = sum(part.startswith("cell-") for part in state)
    threads = about.get("threads")
    tables = about.get("tables")
    checks = {
        "deltas": isinstance(about.get("deltas"), bool),
        # Each thread has its part, unless the query can't be partitioned and one engine holds
        # everything view.
        "threads": type(threads) is int and 0 < threads < 1 << 20 and (cells == threads or "engine" in state),
        "on_invalid": about.get("on_invalid") in ("raise", "quarantine"),
        "plan": isinstance(about.get("plan"), str),
        "layout": about["layout"] is None or isinstance(about["layout"], str),
        "report": about.get("report") is None or isinstance(about["report"], str),
        "tables": isinstance(tables, dict)
        and all(isinstance(columns, list) and all(type(c) is str for c in columns) for columns in tables.values()),
    }
    for field, good in checks.items():
        if not good:
            raise _corrupt(path, f"{field!r} is {str(about.get(field))[:100]!r}")


def check_tables(plan: Plan, tables: Mapping[str, tuple[str, ...]]) -> None:
    """Raise ValueError unless the listed tables have the columns that the plan reads."""
    listed = {name.lower(): columns for name, columns in tables.items()}
    for table in plan.tables:
        read = {column.name for column in table.columns}
        missing = read - set(listed.get(table.name.lower(), read))
        if missing:
            raise ValueError(f"table {table.name} has no column {', '.join(sorted(missing))}")


def check_layout(plan: Plan, layout: Layout, threads: int) -> None:
    """Raise ValueError unless the layout may be one of this plan."""
    result = layout.merge or layout.cell
    resolvers = {resolver.table.name: resolver.table for resolver in layout.resolvers}
    tables = tuple(resolvers.get(table.name, table) for table in layout.cell.tables)
    if (layout.cells, tables, result.columns, result.bag) != (threads, plan.tables, plan.columns, plan.bag):
        raise ValueError("its layout is not that of its plan")


def _corrupt(path: str | os.PathLike[str], reason: str) -> StateError:
    return StateError(
        f"{os.fspath(path)} is not a saved view",
        code="CROWN-STATE-CORRUPT",
        reason=reason,
        hint="give a file that `save` wrote",
    )
