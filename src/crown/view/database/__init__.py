"""Many views over one state.

- `database`: the class; `catalog`: the tables and views, and their common plan
- `file`: saved databases; `subscribers`: callbacks and iterators that receive deltas
- `figures`: what is stored, by table, stage and view; `facts`: what the console shows
"""
