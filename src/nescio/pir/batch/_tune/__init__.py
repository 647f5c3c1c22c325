"""The search behind `nescio tune`: layouts for a log, under budgets of bytes and time."""
