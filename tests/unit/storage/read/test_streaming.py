import subprocess
import sys
import threading
import time

import pyarrow as pa
import pytest

from hudi_sql.storage.read.streaming import stream_in_order


def batch(value):
    return pa.record_batch([pa.array([value])], ["v"])


def values(stream):
    return [item.column("v")[0].as_py() for item in stream]


@pytest.mark.parametrize("threads", [1, 2, 3, 50])
def test_order_is_that_of_the_sources(threads):
    def source(number):
        def read():
            for index in range(number % 4 * 3):
                time.sleep(0.001 * (5 - number % 5))
                yield batch(100 * number + index)

        return read

    wanted = [100 * number + index for number in range(12) for index in range(number % 4 * 3)]
    assert values(stream_in_order([source(number) for number in range(12)], threads)) == wanted


def test_sources_are_read_at_once():
    meet = threading.Barrier(3, timeout=10)

    def read():
        meet.wait()
        yield batch(1)

    assert values(stream_in_order([read] * 3, 3)) == [1, 1, 1]


def test_no_more_is_read_than_the_consumer_can_hold():
    given = []

    def read():
        for index in range(1000):
            given.append(index)
            yield batch(index)

    stream = stream_in_order([read] * 2, 2)
    next(stream)
    time.sleep(0.3)
    assert len(given) < 20
    stream.close()


@pytest.mark.parametrize("threads", [1, 4])
def test_error_comes_at_its_place(threads):
    def fine():
        yield batch(1)

    def broken():
        yield batch(2)
        raise ValueError("broken")

    stream = stream_in_order([fine, broken, fine], threads)
    assert values([next(stream), next(stream)]) == [1, 2]
    with pytest.raises(ValueError, match="broken"):
        next(stream)


def test_stream_that_is_kept_unread_does_not_keep_the_interpreter():
    script = """if True:
        import pyarrow as pa
        from hudi_sql.storage.read.streaming import stream_in_order

        def read():
            while True:
                yield pa.record_batch([[1]], ["v"])

        reader = pa.RecordBatchReader.from_batches(next(read()).schema, stream_in_order([read] * 4, 4))
        reader.read_next_batch()
        reader.close()
    """
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_closing_stops_the_threads_and_closes_the_sources():
    closed = []

    def read():
        try:
            while True:
                yield batch(1)
        finally:
            closed.append(True)

    stream = stream_in_order([read] * 3, 3)
    next(stream)
    stream.close()
    assert len(closed) == 3
    assert not [item for item in threading.enumerate() if item.name == "hudi-sql-read"]
