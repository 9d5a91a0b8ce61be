"""Two traces compared, and a trace held to a budget.

In: analyses. Out: what became faster, slower, new and gone; whether the budget holds.
"""
