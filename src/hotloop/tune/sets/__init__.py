"""Sets of fresh processes: run once, kept in the session, with the time they take learned.

In: which plans run beside one another. Out: their blocks, their losses, and what the original against itself gave.
"""
