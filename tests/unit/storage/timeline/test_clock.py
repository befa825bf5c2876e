from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from hudi_sql.errors import BindError
from hudi_sql.storage.model.instant import InstantTime
from hudi_sql.storage.properties.kinds import TimelineZone
from hudi_sql.storage.timeline.clock import InstantClock, format_instant, instant_epoch_ms, parse_time_text


@pytest.fixture
def zone(monkeypatch):
    def use(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    before = os.environ.get("TZ")
    yield use
    if before is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = before
    time.tzset()


def ms(*parts):
    return int(datetime(*parts, tzinfo=UTC).timestamp() * 1000)


class Ticks:
    """A clock that stands, or goes where it is told."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


def test_times_of_a_standing_clock_still_ascend():
    clock = InstantClock(TimelineZone.UTC, now_ms=Ticks(ms(2026, 12, 31, 23, 59, 59, 998_000)))
    assert [clock.next_instant().value for _ in range(4)] == [
        "20261231235959998",
        "20261231235959999",
        "20270101000000000",
        "20270101000000001",
    ]


def test_times_are_later_than_all_observed_ones():
    clock = InstantClock(TimelineZone.UTC, now_ms=Ticks(ms(2026, 1, 1)))
    clock.observe(InstantTime("20260101000005000"), None, InstantTime("20260101000001000"))
    assert clock.next_instant() == InstantTime("20260101000005001")
    clock.observe(InstantTime("20250101000005000"))
    assert clock.next_instant() == InstantTime("20260101000005002")
    clock.observe()
    assert clock.next_instant() == InstantTime("20260101000005003")


@pytest.mark.parametrize(
    ("seen", "given"),
    [
        ("20270101000000", "20270101000001000"),
        ("20270101000000123001", "20270101000000124"),
        ("99999999999999998", "99999999999999999"),
    ],
)
def test_odd_instants_of_others_are_passed(seen, given):
    clock = InstantClock(TimelineZone.UTC, now_ms=Ticks(ms(2026, 1, 1)))
    clock.observe(InstantTime(seen))
    drawn = clock.next_instant()
    assert drawn == InstantTime(given)
    assert drawn > InstantTime(seen)


def test_initialisation_instants_of_metadata_tables_do_not_matter():
    clock = InstantClock(TimelineZone.UTC, now_ms=Ticks(ms(2026, 1, 1)))
    clock.observe(InstantTime("00000000000000000"))
    assert clock.next_instant() == InstantTime("20260101000000000")


def test_threads_never_share_a_time():
    clock = InstantClock(TimelineZone.UTC)
    with ThreadPoolExecutor(8) as threads:
        drawn = list(threads.map(lambda _: clock.next_instant(), range(500)))
    assert len(set(drawn)) == 500


def test_the_systems_clock_is_used():
    before = time.time() * 1000 - 1
    drawn = instant_epoch_ms(InstantClock(TimelineZone.UTC).next_instant(), TimelineZone.UTC)
    assert before <= drawn <= time.time() * 1000


def test_local_tables_have_the_time_of_the_process_and_utc_tables_have_not(zone):
    now = ms(2026, 3, 1, 10)
    for name, local in (
        ("Asia/Seoul", "20260301190000000"),
        ("America/New_York", "20260301050000000"),
        ("UTC", "20260301100000000"),
    ):
        zone(name)
        assert format_instant(now, TimelineZone.LOCAL).value == local
        assert format_instant(now, TimelineZone.UTC).value == "20260301100000000"
        for kind in TimelineZone:
            assert instant_epoch_ms(format_instant(now, kind), kind) == now


def test_order_holds_through_the_hour_that_comes_twice(zone):
    zone("America/New_York")
    ticks = Ticks(ms(2026, 11, 1, 5, 30))  # 01:30 for the first time
    clock = InstantClock(TimelineZone.LOCAL, now_ms=ticks)
    first = clock.next_instant()
    assert first == InstantTime("20261101013000000")
    ticks.now = ms(2026, 11, 1, 6, 10)  # 01:10 for the second time
    second = clock.next_instant()
    assert second == InstantTime("20261101013000001")
    fresh = InstantClock(TimelineZone.LOCAL, now_ms=ticks)  # another process, which has read the timeline
    fresh.observe(second)
    assert fresh.next_instant() > second
    ticks.now = ms(2026, 11, 1, 7, 0)
    assert clock.next_instant() == InstantTime("20261101020000000")


def test_a_clock_that_is_set_back_keeps_order():
    ticks = Ticks(ms(2026, 1, 1, 1))
    clock = InstantClock(TimelineZone.UTC, now_ms=ticks)
    first = clock.next_instant()
    ticks.now = ms(2026, 1, 1)
    assert clock.next_instant() > first


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("20260301100000123", "20260301100000123"),
        (" 20260301100000123 ", "20260301100000123"),
        ("20260301100000", "20260301100000999"),
        ("2026-03-01 10:00:00.123", "20260301100000123"),
        ("2026-03-01 10:00:00", "20260301100000999"),
        ("2026-03-01", "20260301000000000"),
        ("2024-02-29", "20240229000000000"),
    ],
)
def test_forms_of_times(text, instant):
    for kind in TimelineZone:
        assert parse_time_text(text, kind) == InstantTime(instant)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026",
        "20260301",
        "2026030110000012",
        "202603011000001234",
        "2026-13-01",
        "2026-02-29",
        "2026-03-01 25:00:00",
        "2026-03-01 10:00",
        "2026-03-01T10:00:00Z",
        "2026-03-01 10:00:00.1",
        "20261301000000000",
        "00000000000000000",
        "\uff12026-03-01",
        "1796100867",
    ],
)
def test_other_texts_are_bind_errors(text):
    with pytest.raises(BindError) as caught:
        parse_time_text(text, TimelineZone.UTC)
    assert caught.value.hint
    assert repr(text) in caught.value.message


@pytest.mark.parametrize("text", ["00000000000000000", "2026", "x", "2026010100000012"])
def test_no_moment_of_what_is_no_time(text):
    with pytest.raises(ValueError):
        instant_epoch_ms(InstantTime(text), TimelineZone.UTC)
