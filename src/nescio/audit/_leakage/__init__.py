"""Attacks on a single recovered update: gradient inversion and property inference (PyTorch)."""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "nescio.audit.leakage needs PyTorch: pip install 'nescio[audit-attacks]'", name=error.name
    ) from error
