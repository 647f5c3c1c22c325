"""The three applications of the GPU lookup paper: rates, latencies, and quality against cost.

Section 5 of "GPU-based Private Information Retrieval for On-Device Machine Learning Inference"
(Lam et al., 2024): Figures 11, 12 and 16 to 20, and Table 3. The applications are in `examples/`.
"""
