"""Figures of one trace: the device timeline, kernels, operators, modules, memory, health.

In: a `LinkedTrace`. Out: one value per table of the report.
"""
