"""The engine host: one resident process beside each executor, holding the engines of the cells that run there.

Python workers are short-lived (idle ones are closed after 60 s, any slot may get any cell), so they can't hold engines.
The host can: workers connect to it over a private Unix socket, and it exits with its executor. It holds nothing that
can't be rebuilt: the state store is the only source of truth, and an engine is used only when its (version, token) are
those that the state names.

`protocol` frames messages, `engines` caches and rebuilds engines, `server` answers requests, `launch` finds or starts a
host.
"""
