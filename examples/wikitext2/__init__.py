"""A language model over WikiText-2 whose lookups of words are private."""
