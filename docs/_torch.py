"""PyTorch for the API reference, where it need not be installed: names without behavior.

Sphinx's own stand-ins are objects, which neither `Tensor | None` nor a base class accepts. Here a
capitalized name is an empty class, as it is in PyTorch, and so are the types in lower case.
"""

import importlib.machinery
import sys
import types

_TYPES = {"device", "dtype"}


class _Module(types.ModuleType):
    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        is_type = name[0].isupper() or name in _TYPES
        made = type(name, (), {"__module__": self.__name__}) if is_type else _function
        setattr(self, name, made)
        return made


def _function(*args, **kwargs):
    raise NotImplementedError


def install():
    """Makes `import torch` find the names, also where PyTorch is installed."""
    names = ["torch", "torch.nn", "torch.nn.functional", "torch.autograd"]
    for name in names:
        module = sys.modules[name] = _Module(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
