"""Code for which torch has one call, recognised in source: attention and activation functions that are written out.

In: the text of a file. Out: each place, with the call that computes the same, or the reason why there is none. `lint`
reports them, `optimize` replaces them in a running model and in the source. Beside them, what says that a data set is
changed while its loader lives (`told_datasets`). Reads source with `ast` and imports the
standard library alone, because it is imported in the user's process.
"""
