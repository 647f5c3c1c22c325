"""Figures and tables on GPUs of the paper on private lookups (Lam et al., 2024).

Lam et al., "GPU-based Private Information Retrieval for On-Device Machine Learning Inference".
"""
