"""The readers-writer lock."""

import threading
import time

from nescio._locks import SharedLock


def test_readers_share_it():
    lock = SharedLock()
    together = threading.Barrier(3, timeout=10)

    def read():
        with lock.reading():
            together.wait()

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert together.n_waiting == 0
    assert not together.broken


def test_a_writer_has_it_alone_and_does_not_wait_for_ever():
    lock = SharedLock()
    log, stop = [], threading.Event()

    def read():
        while not stop.is_set():
            with lock.reading():
                log.append("read")
                time.sleep(0.001)
                log.append("done")

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        with lock.writing():
            assert log.count("read") == log.count("done")
            before = len(log)
            time.sleep(0.002)
            assert len(log) == before
    stop.set()
    for thread in threads:
        thread.join(10)


def test_a_reader_may_read_again_while_a_writer_waits():
    lock = SharedLock()
    log = []

    def write():
        with lock.writing():
            log.append("written")

    writer = threading.Thread(target=write, daemon=True)

    def read():
        with lock.reading():
            writer.start()
            while not lock._writers_waiting:
                time.sleep(0.001)
            with lock.reading():
                log.append("read twice")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(10)
    writer.join(10)
    assert log == ["read twice", "written"]
    assert not lock.is_mine
