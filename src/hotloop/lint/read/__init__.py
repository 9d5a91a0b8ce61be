"""Which files are meant, and one file parsed once: nodes, lines, suppressions.

In: paths. Out: source files with every node numbered.
"""
