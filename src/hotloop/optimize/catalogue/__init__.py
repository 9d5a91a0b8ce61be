"""The catalogue: one family, one folder; one optimization, one folder, or one file where it needs no more.

A folder holds `row` (the optimization: its page, what it offers, how it is switched on), and as far as it has them
`activation` (acts in the user's process), `knob` (the same, switched in a running program), `pattern` (where the
program does it otherwise), `rewrite` (of the user's source), and what these alone need.
"""
