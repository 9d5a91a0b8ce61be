"""Loops over a tensor's rows whose turns do not depend on one another, and the one call that makes all of them.

In: the tree of a user's file. Out: for each such loop what one turn computes from its rows and what is done with it;
for the others the reason. That the call computes the same is seen at run time, on what the loop is given.
"""
