"""What is tried, in which order and for how long.

In: an observation, the catalogue and the budget. Out: candidates with predicted gains, and the length of a block.
"""
