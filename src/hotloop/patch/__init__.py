"""The plan as a change of the user's own source.

In: a plan with the places that its run was seen to call from, and the files. Out: the changed files, and for each step
what became of it.
"""
