"""length_bucketing: samples of about equal length share a batch."""
