"""What a session is for: which candidates are offered, what a gain is, and what a proof must show.

Public: `objective.Objective`, `judge.judged`, `savings.peaks_prior`.
"""
