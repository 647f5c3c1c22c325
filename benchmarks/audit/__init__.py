"""The figures and tables of chapter 6 of the thesis: what the audit recovers, and when it fails."""
