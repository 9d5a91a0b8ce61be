"""Does a part of a model compute the same another way? Outputs, gradients and dropout, on real inputs, before it is on.

In: a module that was just called, and two ways to run it. Out: how far they are apart, or the reason why they may not
be exchanged; and the knob that exchanges what agreed.
"""
