"""`hotloop memory plan` on programs whose peak somebody knows, beside other estimators, and on programs of all kinds."""
