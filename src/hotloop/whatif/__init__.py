"""What would be if: ceilings and predictions, from one more run in which changes are switched on and off."""
