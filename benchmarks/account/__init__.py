"""What share of whole runs the account names."""
