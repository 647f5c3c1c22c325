"""Clicks on ads of Taobao: a model over a user's clicked ads and profile, with private lookups."""
