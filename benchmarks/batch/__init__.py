"""Batch lookups: failures of exact mode, and inferences per second against bytes.

Section 4 of "GPU-based Private Information Retrieval for On-Device Machine Learning Inference"
(Lam et al., 2024), and Yeo, "Cuckoo Hashing in Cryptography" (2023).
"""
