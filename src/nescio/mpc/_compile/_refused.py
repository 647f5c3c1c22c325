"""Operators on secrets that are refused, with the reason by name."""

_ATTENTION = (
    "softmax attention, which multiplies secrets",
    "keep attention on the client's side, or replace it by convolutions and linear layers",
)
_SOFTMAX = (
    "a softmax over secrets",
    "leave a last softmax out: the client computes it from the outputs",
)
_NORM = (
    "a normalization with statistics of its input",
    "train with batch norm, whose statistics are constants",
)
_RECURRENT = ("a recurrent layer, whose gates multiply secrets", "use convolutions along the time")
_LOOKUP = (
    "a lookup of rows by secret indices",
    "look rows up privately with nescio.torch, and compile the rest of the model",
)
_INDEX = (
    "an order or an index of secrets",
    "leave it out: the client computes it from the outputs; or let torch.argmax(outputs, dim=1) of "
    "outputs (n, C) be last",
)
_PRODUCT = ("a product of two secrets", "replace attention by convolutions and linear layers")
_RANDOM = ("random numbers", "call dropout with training=self.training")

REFUSED: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("scaled_dot_product_attention", "_native_multi_head_attention"), _ATTENTION),
    **dict.fromkeys(("softmax", "_softmax", "log_softmax", "_log_softmax", "softmin"), _SOFTMAX),
    **dict.fromkeys(
        (
            *("layer_norm", "native_layer_norm", "group_norm", "native_group_norm"),
            *("instance_norm", "rms_norm", "_fused_rms_norm", "local_response_norm"),
            *("_native_batch_norm_legit", "_native_batch_norm_legit_functional", "norm"),
            *("linalg_vector_norm", "var", "std", "var_mean"),
        ),
        _NORM,
    ),
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell"), _RECURRENT),
    **dict.fromkeys(("bmm", "baddbmm"), _PRODUCT),
    **dict.fromkeys(("embedding", "embedding_bag", "_embedding_bag"), _LOOKUP),
    **dict.fromkeys(("argmax", "argmin", "topk", "sort", "argsort", "max", "min"), _INDEX),
    **dict.fromkeys(("bernoulli", "rand_like", "randn_like", "native_dropout", "rrelu"), _RANDOM),
}

UNKNOWN = (
    "an operator without a private form here",
    "write it with convolutions, linear layers, pooling and functions of one number",
)
ATTENTION_MODULES = ("MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer")
ATTENTION = _ATTENTION
RANDOM = _RANDOM
