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

    def check():
        assert log.count("read") == log.count("done")
        before = len(log)
        time.sleep(0.002)
        assert len(log) == before

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        lock.write(check)
    stop.set()
    for thread in threads:
        thread.join(10)


def test_a_reader_may_read_again_while_a_writer_waits():
    lock = SharedLock()
    log = []

    writer = threading.Thread(target=lock.write, args=[lambda: log.append("written")], daemon=True)

    def read():
        with lock.reading():
            writer.start()
            while not lock._turns:
                time.sleep(0.001)
            with lock.reading():
                log.append("read twice")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(10)
    writer.join(10)
    assert log == ["read twice", "written"]
    assert not lock.is_mine


def test_the_last_reader_writes_and_the_writer_gets_the_error():
    """The writer waits until it is done, whoever does it; a reader never sees its error."""
    lock, writers, errors = SharedLock(), [], []

    def fail():
        writers.append(threading.get_ident())
        raise ValueError("refused")

    def write():
        try:
            lock.write(fail)
        except ValueError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=write, daemon=True) for _ in range(2)]
    with lock.reading():
        for thread in threads:
            thread.start()
        while len(lock._turns) < 2:
            time.sleep(0.001)
        assert writers == []
    for thread in threads:
        thread.join(10)
    assert writers == [threading.get_ident()] * 2
    assert errors == ["refused"] * 2
    lock.write(lambda: writers.append(0))
    with lock.reading():
        assert writers[2:] == [0]


def test_every_write_is_alone_among_many_threads():
    lock, inside, counts = SharedLock(), [0], {"writes": 0, "reads": 0}
    guard = threading.Lock()

    def write():
        inside[0] += 1
        assert inside[0] == 1
        counts["writes"] += 1
        inside[0] -= 1

    def work(number):
        for i in range(300):
            if (i + number) % 3 == 0:
                lock.write(write)
            with lock.reading():
                assert inside[0] == 0
                with guard:
                    counts["reads"] += 1

    threads = [threading.Thread(target=work, args=[number], daemon=True) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert counts == {"writes": 600, "reads": 1800}
