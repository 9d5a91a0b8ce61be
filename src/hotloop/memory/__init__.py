"""What a program needs on devices that are not here.

In: the user's command, names of devices. Out: a `MemoryPlan`: peaks by configuration, what fits, what holds the peak.
The program runs on a virtual GPU (`probe.virtual_gpu`), unmodified, for a few steps of each configuration.
"""
