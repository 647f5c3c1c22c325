"""x"""
from .weights import QuantizedWeights, from_integers, quantize_weights
