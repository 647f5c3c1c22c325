"""Oblivious transfer. Needs PyNaCl: pip install 'nescio[ot]'."""
