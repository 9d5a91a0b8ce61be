"""The program's data loaders: which of them feed training, how their settings and batches are changed and seen."""
