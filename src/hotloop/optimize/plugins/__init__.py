"""What optimizations of other packages derive from.

In: a class of modules, and the class that takes its place. Out: an optimization like any other.
"""
