"""Edit the user's Python files: find the observed call, change exactly it, show or write the difference.

In: files as bytes, and the places that a run was seen to call from. Out: the same files with a few nodes changed;
everything else stays byte for byte. It knows Python and nothing of PyTorch.
"""
