"""Many views over one state.

- `database`: the class; `catalog`: which tables and views there are, and the plan of all of them
- `file`: saved databases; `subscribers`: who gets the deltas
- `figures`: what is stored, by table, stage and view; `facts`: what the console shows
"""
