"""PyTorch models whose embedding rows come from two servers, which do not learn which rows.

    export(model, "exported")                       # at the owner: tables, and the device's rest
    private = load(Model, "exported", servers)      # on the device
    private(x)                                      # the bits of model(x)

    PrivateEmbedding         nn.Embedding over a table on two servers
    PrivateEmbeddingBag      nn.EmbeddingBag over a table on two servers
    export                   cuts a trained model in the servers' tables and the device's rest
    load                     puts the device's half together

Guide: docs/torch.md. Needs the extra `torch`: pip install 'nescio[torch]'.
"""

try:
    import safetensors as _safetensors  # noqa: F401
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "nescio.torch needs PyTorch and safetensors: pip install 'nescio[torch]'", name=error.name
    ) from error

from ._bag import PrivateEmbeddingBag
from ._embedding import PrivateEmbedding
from ._export import export
from ._load import load

__all__ = ["PrivateEmbedding", "PrivateEmbeddingBag", "export", "load"]
