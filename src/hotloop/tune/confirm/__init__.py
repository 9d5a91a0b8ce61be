"""The confirmation: the whole plan in fresh processes against the original.

In: the plan that the search found. Out: the speed-up that is quoted, and each step's factor of it.
"""
