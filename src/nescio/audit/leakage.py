"""What one user's update tells of the user's data, alone and in a sum: why disaggregation matters.

    data         CIFAR-10 as pictures, from a folder
    networks     the networks of the chapter: LeNet, multilayer perceptrons
    updates      gradients and FedAvg updates of one user, as vectors
    inversion    pictures from gradients (Zhu et al.) and from FedAvg updates (Geiping et al.)
    properties   whether a user's data have a property (Melis et al.), as an AUC

Thesis chapter 6, sections 6.4.2 and 6.4.3. Small and real: for showing on one's own data what a
recovered update gives away. Needs PyTorch: pip install 'nescio[audit-attacks]'.
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
