"""Values as text at 80 columns: one file per kind of value.

In: values of the model, of traces and of the machine. Out: text for a terminal.
"""
