"""The steps of silent OT, each alone, as in the cuOT paper (Gan et al.)."""
