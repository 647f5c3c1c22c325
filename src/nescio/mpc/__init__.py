"""Two-party private inference: one party has a model, the other an input.

Under construction, in private modules: one-time tables of activations, networks of integers in
clear and from floats, linear layers offline, and the online phase with material from a dealer.
"""
