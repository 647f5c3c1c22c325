"""Attacks on one user's update, alone and in a sum: what a recovered update reveals.

    gradient, local_update            gradients and FedAvg updates of one user, as vectors
    invert_gradient, invert_update    images from gradients (Zhu et al.) and from FedAvg updates
                                      (Geiping et al.); `psnr` and `best_psnr` rate them
    property_scores, auc              inference of properties of a user's data (Melis et al.)
    lenet, perceptron                 the networks of the chapter

Thesis chapter 6, sections 6.4.2 and 6.4.3: small implementations to show what a recovered update
reveals. Needs PyTorch: pip install 'nescio[audit-attacks]'.
"""

from ._leakage.inversion import best_psnr, invert_gradient, invert_update, psnr
from ._leakage.networks import lenet, perceptron
from ._leakage.properties import auc, property_scores
from ._leakage.updates import LocalTraining, gradient, local_update

__all__ = [
    "LocalTraining",
    "auc",
    "best_psnr",
    "gradient",
    "invert_gradient",
    "invert_update",
    "lenet",
    "local_update",
    "perceptron",
    "property_scores",
    "psnr",
]
