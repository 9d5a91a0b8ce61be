"""The account of the whole run: all wall time from start to end, by name.

In: spans and steps. Out: seconds per part; the parts add up to the wall time.
"""
