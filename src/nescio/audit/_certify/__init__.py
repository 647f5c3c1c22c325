"""Certificates for recovered columns, the comparison with chance, and the grade."""
