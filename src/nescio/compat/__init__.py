"""Other libraries' interfaces on Nescio's engine, for programs that were written against them.

gpu_dpf     facebookresearch/GPU-DPF: `from nescio.compat import gpu_dpf as dpf`
"""
