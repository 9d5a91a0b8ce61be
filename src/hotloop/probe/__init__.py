"""The only code of hotloop inside the user's process: it fails open and stands alone.

It imports the standard library, torch and itself; the optimizations that it activates are handed to it by name.
"""
