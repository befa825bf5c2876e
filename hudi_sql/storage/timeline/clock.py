"""Instant times: drawing new ones, and reading those that users write (timeline notes §4)."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hudi_sql.errors import BindError
from hudi_sql.storage.model.instant import InstantTime
from hudi_sql.storage.properties.kinds import TimelineZone

__all__ = ["InstantClock", "format_instant", "instant_epoch_ms", "parse_time_text"]

_DIGITS = 17
_SECOND_DIGITS = 14
_LAST_MS = "999"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME_TEXT = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})(?: (?P<time>\d{2}:\d{2}:\d{2})(?:\.(?P<ms>\d{3}))?)?", re.ASCII
)
_INSTANT_TEXT = re.compile(r"\d{14}(\d{3})?", re.ASCII)


class InstantClock:
    """Draws instant times in the table's zone, each later than all before and than all observed ones.

    Where the zone's clock goes back (the autumn hour), or another writer's clock is ahead, times go on from
    the greatest known one in steps of a millisecond, so that text order stays the order of events.

    Args:
        zone: `hoodie.table.timeline.timezone` of the table.
        now_ms: Milliseconds since 1970; the system's clock unless given.
    """

    def __init__(self, zone: TimelineZone, *, now_ms: Callable[[], int] | None = None) -> None:
        self._zone = zone
        self._now_ms = now_ms or _system_ms
        self._last: InstantTime | None = None
        self._guard = threading.Lock()

    def observe(self, *times: InstantTime | None) -> None:
        """Take note of times that stand in a timeline; None is ignored."""
        with self._guard:
            known = [time for time in (self._last, *times) if time is not None]
            self._last = max(known, default=None)

    def next_instant(self) -> InstantTime:
        """A time later than every one given or observed before."""
        with self._guard:
            drawn = format_instant(self._now_ms(), self._zone)
            if self._last is not None and drawn <= self._last:
                drawn = _following(self._last)
            self._last = drawn
            return drawn


def format_instant(epoch_ms: int, zone: TimelineZone) -> InstantTime:
    """The instant time of a moment.

    Example:
        >>> format_instant(1796100867379, TimelineZone.UTC)
        InstantTime(value='20261201045427379')
    """
    moment = _EPOCH + timedelta(milliseconds=epoch_ms)
    return _from_datetime(moment if zone is TimelineZone.UTC else moment.astimezone())


def instant_epoch_ms(instant: InstantTime, zone: TimelineZone) -> int:
    """Milliseconds since 1970 of an instant, its digits read in a zone; 14 digits mean the end of the second.

    Raises:
        ValueError: The text is no time (instants of the metadata table's initialisation are not).
    """
    moment = _to_datetime(instant)
    aware = moment.replace(tzinfo=UTC) if zone is TimelineZone.UTC else moment.astimezone()
    return (aware - _EPOCH) // timedelta(milliseconds=1)


def parse_time_text(text: str, zone: TimelineZone) -> InstantTime:
    """The instant time that a TIMESTAMP AS OF text means, all of it in the timeline's own zone.

    Known forms: an instant of 17 digits; 14 digits (the end of that second); `yyyy-MM-dd HH:mm:ss[.SSS]`
    (without milliseconds again the end of the second, as Spark does); `yyyy-MM-dd` (its first moment).

    Raises:
        BindError: Any other text, or a day or hour that does not exist.

    Example:
        >>> parse_time_text("2026-03-01 10:00:00", TimelineZone.UTC)
        InstantTime(value='20260301100000999')
    """
    del zone  # neither form states a zone: the digits are compared with those of the timeline
    stripped = text.strip()
    if _INSTANT_TEXT.fullmatch(stripped):
        digits = stripped.ljust(_DIGITS, "9")
    elif match := _TIME_TEXT.fullmatch(stripped):
        clock = match["time"] or "00:00:00"
        ms = match["ms"] or (_LAST_MS if match["time"] else "000")
        digits = re.sub("[-: ]", "", match["date"] + clock) + ms
    else:
        raise _no_time(text)
    try:
        _to_datetime(InstantTime(digits))
    except ValueError as exc:
        raise _no_time(text) from exc
    return InstantTime(digits)


def _no_time(text: str) -> BindError:
    return BindError(
        f"{text!r} is no time of the table's timeline",
        hint="Write an instant (yyyyMMddHHmmssSSS), 'yyyy-MM-dd HH:mm:ss[.SSS]' or 'yyyy-MM-dd'.",
        part="TIMESTAMP AS OF",
    )


def _system_ms() -> int:
    return time.time_ns() // 1_000_000


def _following(last: InstantTime) -> InstantTime:
    try:
        return _from_datetime(_to_datetime(last) + timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        # Digits that are no time: Hudi counts them up too (HoodieInstantTimeGenerator.instantTimePlusMillis).
        return InstantTime(str(int(last.value) + 1).zfill(len(last.value)))


def _from_datetime(moment: datetime) -> InstantTime:
    # Not strftime: it drops leading zeros of years before 1000 on some systems.
    parts = (moment.month, moment.day, moment.hour, moment.minute, moment.second)
    return InstantTime(
        f"{moment.year:04}{''.join(f'{part:02}' for part in parts)}{moment.microsecond // 1000:03}"
    )


def _to_datetime(instant: InstantTime) -> datetime:
    """Naive: the digits as they are. Digits after the milliseconds (old metadata tables) are left out."""
    text = instant.value
    if len(text) < _SECOND_DIGITS or not text.isdecimal():
        raise ValueError(f"{text} is no time")
    text = text + _LAST_MS if len(text) == _SECOND_DIGITS else text[:_DIGITS]
    if len(text) != _DIGITS:
        raise ValueError(f"{text} is no time")
    return datetime(  # noqa: DTZ001  # the zone is the caller's
        int(text[:4]),
        int(text[4:6]),
        int(text[6:8]),
        int(text[8:10]),
        int(text[10:12]),
        int(text[12:14]),
        int(text[14:]) * 1000,
    )
