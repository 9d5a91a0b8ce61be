"""Loops that call a recurrent cell for every time step, and torch's one call for all of them.

In: the tree of a user's file. Out: for each such loop which cells it calls, on what, in which states; for the others
the reason. Which cell it is, and that the one call computes the same, is seen at run time, on what the loop is given.
"""
