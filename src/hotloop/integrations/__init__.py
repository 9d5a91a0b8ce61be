"""Where a setting lives in a framework: the knob that it has itself for what a step of a plan does.

In: a step and the user's files. Out: the framework's own keyword changed, or the words that the command line then has;
nothing where the program uses no framework, or the framework has no such knob.
"""
