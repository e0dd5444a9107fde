"""Read and write small files next to Spark's, on any file system that Arrow supports."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.fs


def open_filesystem(path: str) -> tuple[Any, str]:
    """Return the file system of a path or URI, and the path on it."""
    if "://" in path or path.startswith("file:"):
        found, root = pyarrow.fs.FileSystem.from_uri(path)
        return found, str(root)
    return pyarrow.fs.LocalFileSystem(), path


def write_at_once(path: str, name: str, data: bytes) -> None:
    """Write a file atomically; an existing one is replaced."""
    files, root = open_filesystem(path)
    files.create_dir(root, recursive=True)
    # Spark and Crown skip names that begin with an underscore or dot.
    early = f"{root}/_{name}.part"
    with files.open_output_stream(early) as output:
        output.write(data)
    files.move(early, f"{root}/{name}")


def write_new(path: str, name: str, data: bytes) -> bool:
    """Write a new file; return False if it exists. Of several writers on a local disk only one succeeds."""
    files, root = open_filesystem(path)
    if not isinstance(files, pyarrow.fs.LocalFileSystem):
        if read_file(path, name) is not None:
            return False
        write_at_once(path, name, data)
        return True
    files.create_dir(root, recursive=True)
    early = f"{root}/_{name}.{os.getpid()}.part"
    Path(early).write_bytes(data)
    try:
        os.link(early, f"{root}/{name}")
    except FileExistsError:
        return False
    finally:
        os.unlink(early)
    return True


def remove(path: str, name: str) -> None:
    """Remove a file or a directory with its contents; do nothing if it does not exist."""
    files, root = open_filesystem(path)
    place = f"{root}/{name}"
    match files.get_file_info(place).type:
        case pyarrow.fs.FileType.Directory:
            files.delete_dir(place)
        case pyarrow.fs.FileType.File:
            files.delete_file(place)


def read_file(path: str, name: str) -> bytes | None:
    """Return a file's bytes, or None if it does not exist."""
    files, root = open_filesystem(path)
    try:
        with files.open_input_stream(f"{root}/{name}") as stream:
            return bytes(stream.read())
    except FileNotFoundError:
        return None


def names_in(path: str) -> list[str]:
    """Return the names in a directory, without temporary ones, in order."""
    files, root = open_filesystem(path)
    selector = pyarrow.fs.FileSelector(root, allow_not_found=True)
    return sorted(info.base_name for info in files.get_file_info(selector) if info.base_name[0] not in "._")
