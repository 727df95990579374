"""Experiments: from a short spec to runs on disk and one table of results.

A run passes through the modules in this order:

`spec`        a spec from TOML, JSON or a dictionary, and the runs that it asks for; read with
              `reading` (tables, values and messages), `grid` (lists that stand for several runs),
              `entries` (games and learners), `pairing` (who plays whom, and where uniform play is a baseline),
              `tuning` (tries, and what came of them) of `candidates` (combinations of settings) by a `search` (in
              which stages they play)
`settings`    all that decides the result of a run, and its id
`building`    the game and the learner that settings describe
`execution`   one run, from its settings to its `record`
`engines`     where runs are played: processes of this machine, a Dask cluster, any executor
`runner`      plays what a spec asks for and what is not stored yet; `progress` shows it
`storage`     the folder of results; its `manifest` is the spec as it was understood
`frame`       all results as one table

`ladders` are games that differ in one size, with `growth` and `table_1` as ready ones.
"""
