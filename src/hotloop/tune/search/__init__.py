"""Find what helps: knobs switched together in one process, then arms for what needs a process of its own.

In: candidates. Out: the predicted plan, what was tried and why the rest was refused.
"""
