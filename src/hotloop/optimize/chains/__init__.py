"""Chains of pointwise operations in a model's code, and the one kernel that torch.compile makes of each.

In: the source and the functions of a running model. Out: for each expression that is such a chain a function of its
own, compiled by itself.
"""
