"""A Ray without processes: actors that answer at once, or fail, and nodes with some memory."""

from types import SimpleNamespace


class RayActorError(Exception):
    """Stands for Ray's."""


class ActorDiedError(RayActorError):
    """Stands for Ray's."""


def at_start(error):
    """Returns what Ray raises for an actor whose constructor has raised an error."""
    kind = type(error)
    return ActorDiedError(
        "The actor died because of an error raised in its creation task, \x1b[36mray::Shard"
        '.__init__()\x1b[39m (pid=1)\n  File "shard.py", line 1, in __init__\n'
        f"{kind.__module__}.{kind.__qualname__}: {error}"
    )


class Method:
    """A method of an actor. What it raises, and what it returns, is for `ray.get`."""

    def __init__(self, function):
        self._function = function

    def options(self, **_):
        return self

    def remote(self, *arguments):
        return lambda: self._function(*arguments)


class FakeRay:
    """The functions of Ray that heads and fronts call; `actors` are all by their names."""

    def __init__(self, memory=1 << 40, nodes=1, start=None):
        self.exceptions = SimpleNamespace(
            ActorDiedError=ActorDiedError, RayActorError=RayActorError
        )
        self.util = SimpleNamespace(list_named_actors=lambda: list(self.actors))
        self.actors = {}
        self.memory = memory
        self.count = nodes
        self.used = 0
        self._start = start

    def remote(self, **_):
        return lambda kind: SimpleNamespace(options=self._options)

    def _options(self, *, name, **_):
        def remote(*arguments):
            self.actors[name] = self._start(name, *arguments)
            return self.actors[name]

        return SimpleNamespace(remote=remote)

    def get_actor(self, name):
        if name not in self.actors:
            raise ValueError(name)
        return self.actors[name]

    def wait(self, refs, num_returns=1, timeout=None):
        del timeout
        return list(refs)[:num_returns], list(refs)[num_returns:]

    def get(self, ref, timeout=None):
        del timeout
        return ref()

    def kill(self, actor, **_):
        self.actors = {name: one for name, one in self.actors.items() if one is not actor}

    def nodes(self):
        each = {"memory": self.memory}
        return [
            {"Alive": True, "NodeID": f"{i + 1:056x}", "Resources": each} for i in range(self.count)
        ]

    def available_resources(self):
        return {"memory": self.memory * self.count - self.used}
