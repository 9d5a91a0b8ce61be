"""The program runs out of memory: what asked for how much, what was free, and what held the rest.

`witness` looks when the interpreter ends with such an error. `tracking` follows every storage from the first one on, in
a run that is made for it, and knows lines and classes.
"""
