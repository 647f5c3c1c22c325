"""A server of a plan in a thread, and clients of it."""

import contextlib
import threading
import time

from mpc.plans import small_plan
from nescio.mpc import PlanServer, PublicPlan, RemotePlan
from nescio.net import Channel

PLAN, INPUTS = small_plan()


class Service:
    """A running server, and clients of it."""

    def __init__(self, listener, plan=PLAN):
        self.listener, self.plan, self.served = listener, plan, []

    def connect(self, timeout=20):
        return Channel.connect("127.0.0.1", self.listener.port, timeout=timeout)

    def remote(self, plan=None):
        public = PublicPlan.from_bytes((plan or self.plan).public.to_bytes())
        return RemotePlan(public, self.connect, threads=1)

    def wait_for(self, count):
        """Waits until `count` connections have ended."""
        end = time.monotonic() + 20
        while len(self.served) < count:
            assert time.monotonic() < end
            time.sleep(0.01)
        return self.served


@contextlib.contextmanager
def serving(folder, *, plan=PLAN, timeout=20, limits=None, **tls):
    with Channel.listener(timeout=timeout, **tls) as listener:
        service = Service(listener, plan)
        options = {"limits": limits, "threads": 1, "report": service.served.append}
        with PlanServer(plan, listener, folder, **options) as server:
            service.server = server
            thread = threading.Thread(target=server.run)
            thread.start()
            try:
                yield service
            finally:
                server.stop()
                thread.join(20)
                assert not thread.is_alive()


def stores(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "lock")
