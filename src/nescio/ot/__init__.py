"""Oblivious transfer: parameters, and what they are worth."""
