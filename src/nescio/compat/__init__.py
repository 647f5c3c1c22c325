"""Interfaces of other libraries on Nescio's engine, for existing programs.

gpu_dpf     facebookresearch/GPU-DPF: `from nescio.compat import gpu_dpf as dpf`
"""
