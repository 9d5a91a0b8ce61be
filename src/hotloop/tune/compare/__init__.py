"""Two programs against one another, in one duet.

In: two commands, each with the folder that it runs in. Out: a `Comparison`.
"""
