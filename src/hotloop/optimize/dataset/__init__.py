"""Keep the samples of a user's data set: is it deterministic, does it stay the same, does it fit?

In: a map-style data set of the running program. Out: its samples kept in memory, or the reason why they must not be.
"""
