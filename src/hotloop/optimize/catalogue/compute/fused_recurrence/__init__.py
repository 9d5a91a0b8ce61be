"""fused_recurrence: a loop that calls a recurrent cell for every time step becomes one call."""
