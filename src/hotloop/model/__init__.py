"""The values that flow through hotloop: frozen, typed, without logic and without torch."""
