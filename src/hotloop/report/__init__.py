"""Results as text: terminal screens of 80 columns; imports only model, stats and store."""
