"""Which statements of a loop only log or add up values of tensors, and code that runs them a step later.

In: the tree of a user's file. Out: the same tree, in which such statements wait in a queue while the device works on.
It is decided from the source alone, per loop, by how the values are used: where one steers, nothing is changed.
"""
