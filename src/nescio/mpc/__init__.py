"""Two-party private inference: one party has a model, the other an input.

Under construction, in private modules. Both phases are there and joined: networks of integers from
floats (`_quantize`), their simulator (`_network`), the offline phase (`_offline`: linear layers and
one-time tables), stores of what was prepared, and sessions (`_session`).
"""
