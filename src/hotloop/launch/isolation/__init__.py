"""Keep what a run writes away from the user's files: namespaces, overlays, scratch folders.

In: the command and its folder. Out: how the run is isolated, and what that does not cover.
"""
