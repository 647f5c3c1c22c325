"""A small language model."""

import torch

from examples.wikitext2.model import LanguageModel, Shape

WORDS = 300
SHAPE = Shape(hidden=16, width=12, layers=2, cuts=(20, 100))


def made_model():
    torch.manual_seed(4)
    model = LanguageModel(WORDS, SHAPE).eval()
    torch.nn.init.normal_(model.absent)
    torch.nn.init.normal_(model.words.weight)
    return model
