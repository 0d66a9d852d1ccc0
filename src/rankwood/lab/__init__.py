"""The laboratory: studies, sweeps, tuning, reports and public data sets (the extra `lab`)."""
