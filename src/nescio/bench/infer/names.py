"""Names and defaults of options, which the command line needs without the protocols."""

__all__ = ["DEFAULT_SHAPES", "LAYERS"]

LAYERS = ("relu", "conv", "linear")
DEFAULT_SHAPES = ("16-16x32", "512-512")
