"""Benchmarks that reproduce the tables and figures of papers; not part of the wheel.

Run from the root of the repository, with Nescio installed:

    python -m benchmarks.lookup figures    figures and tables of the GPU lookup paper
    python -m benchmarks.applications table3    the applications of the GPU lookup paper
    python -m benchmarks.batch gains       layouts of batch lookups, on real logs
    python -m benchmarks.ot steps          each step of silent OT alone
    python -m benchmarks.quant models      networks with weights of few bits
    python -m benchmarks.quant cpu         layers of few bits on a CPU
    python -m benchmarks.quant gpu         products of few bits on a GPU
    python -m benchmarks.audit figures     figures and tables of the audit chapter
    python -m benchmarks.faults suite      faults of two parties of the service
    benchmarks/gpu.sh                      build, test and measure on a GPU

`nescio bench` has the benchmarks that compare machines; these use its timing and reports.
"""
