"""A web server over a database: look-ups, pages, and server-sent events of deltas for any number of clients.

Run it with `uvicorn app:app` (pip install fastapi uvicorn), then:

    curl -N localhost:8000/views/top_tags/changes        # waits for deltas
    curl -X POST localhost:8000/tables/message_tag -H 'content-type: application/json' -d '[[10, 1], [11, 1]]'
    curl 'localhost:8000/views/by_tag?name=joins'
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pyarrow as pa
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import StreamingResponse

import crown

db = crown.Database(
    """
    CREATE TABLE tag (id BIGINT PRIMARY KEY, name STRING);
    CREATE TABLE message_tag (message BIGINT, tag BIGINT);
    CREATE MATERIALIZED VIEW by_tag AS
        SELECT t.name, COUNT(*) AS reach FROM tag t JOIN message_tag m ON m.tag = t.id GROUP BY t.name;
    CREATE MATERIALIZED VIEW top_tags AS SELECT * FROM by_tag ORDER BY reach DESC LIMIT 10;
    """
)
app = FastAPI()


def found(name: str) -> crown.view.DatabaseView:
    if name not in db:
        raise HTTPException(404, f"there is no view {name}")
    return db[name]


@app.post("/tables/{table}")
async def insert(table: str, rows: list[list[Any]]) -> dict[str, int]:
    """Insert rows; return how many rows of each view changed."""
    try:
        deltas = await asyncio.to_thread(db.insert, table, [tuple(row) for row in rows])
    except crown.CrownError as error:
        raise HTTPException(422, error.message) from error
    return {name: delta.num_rows for name, delta in deltas.items()}


@app.get("/views/{name}")
async def lookup(name: str, request: Request) -> list[dict[str, Any]]:
    """Return the rows with the values of the query string."""
    view = found(name)
    types = {field.name: field.type for field in view.schema}
    wanted = {}
    for column, text in request.query_params.items():
        if column not in types:
            raise HTTPException(422, f"view {name} has no column {column}")
        wanted[column] = int(text) if pa.types.is_integer(types[column]) else text
    rows = await asyncio.to_thread(lambda: view.lookup(**wanted))
    return list(rows.to_pylist())


@app.get("/views/{name}/page")
async def page(name: str, offset: int = 0, limit: int = 20) -> dict[str, Any]:
    view = found(name)
    rows = await asyncio.to_thread(view.page, offset, limit)
    return {"count": view.count(), "rows": rows.to_pylist()}


@app.get("/views/{name}/changes")
async def changes(name: str) -> StreamingResponse:
    """Send every delta of a view as an event, from now on."""
    view = found(name)
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[pa.Table] = asyncio.Queue()
    stop = view.on_change(lambda delta: loop.call_soon_threadsafe(queue.put_nowait, delta))

    async def events() -> AsyncIterator[str]:
        try:
            yield ": connected\n\n"
            while True:
                delta = await queue.get()
                yield f"data: {json.dumps(delta.to_pylist(), default=str)}\n\n"
        finally:
            stop()

    return StreamingResponse(events(), media_type="text/event-stream")
