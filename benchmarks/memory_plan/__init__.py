"""`hotloop memory plan` on programs whose peak is known, beside other estimators, and on programs of all kinds."""
