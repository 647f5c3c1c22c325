"""Two-party private inference: one party has a model, the other an input.

Under construction: the one-time tables of activations are here, in private modules.
"""
