from __future__ import annotations

from enum import Enum

import pytest

from hudi_sql.config.key import (
    ConfigKey,
    check_known,
    choice,
    non_negative_float,
    non_negative_int,
    on_off,
    text,
)
from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import ConfigError


class Colour(Enum):
    RED = "Red"
    BLUE = "blue"


SIZE = ConfigKey(
    name="hoodie.size",
    parse=non_negative_int,
    default=7,
    doc="A size.",
    aliases=("hoodie.old.size", "hoodie.older"),
)


@pytest.mark.parametrize(
    ("settings", "value"),
    [
        ({}, 7),
        ({"hoodie.size": " 8 "}, 8),
        ({"hoodie.old.size": "9"}, 9),
        ({"hoodie.older": "10", "hoodie.old.size": "9"}, 9),
        ({"hoodie.older": "10", "hoodie.size": "0"}, 0),
        ({"hoodie.sizes": "1"}, 7),
    ],
)
def test_the_name_counts_before_its_aliases(settings, value):
    assert SIZE.read(settings) == value


@pytest.mark.parametrize("value", ["-1", "1.5", "", "ten", "1e3"])
def test_a_bad_value_names_the_spelling_that_was_used(value):
    with pytest.raises(ConfigError, match=r"hoodie\.old\.size") as caught:
        SIZE.read({"hoodie.old.size": value})
    assert caught.value.setting == "hoodie.old.size"
    assert caught.value.value == value
    assert caught.value.hint == "A size."
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("parse", "given", "value"),
    [
        (non_negative_float, "0", 0.0),
        (non_negative_float, "1e-9", 1e-9),
        (on_off, "TRUE", True),
        (on_off, "false", False),
        (text, "a,b", "a,b"),
        (choice(Colour), "RED", Colour.RED),
        (choice(Colour), "Blue", Colour.BLUE),
    ],
)
def test_texts_become_values(parse, given, value):
    assert parse(given) == value


@pytest.mark.parametrize(
    ("parse", "given"),
    [
        (non_negative_float, "-0.1"),
        (non_negative_float, "nan"),
        (non_negative_float, "inf"),
        (on_off, "yes"),
        (on_off, "1"),
        (choice(Colour), "green"),
        (choice(Colour), ""),
    ],
)
def test_other_texts_are_no_values(parse, given):
    with pytest.raises(ValueError):
        parse(given)


def test_a_choice_says_what_it_takes():
    with pytest.raises(ValueError, match="Red, blue"):
        choice(Colour)("green")


def test_unknown_settings_are_refused_with_near_names():
    with pytest.raises(ConfigError) as caught:
        check_known(["hoodie.parquet.max.file.sise"], ["hoodie.parquet.max.file.size", "hoodie.other"])
    assert caught.value.near == ("hoodie.parquet.max.file.size",)
    assert "hoodie.parquet.max.file.size" in caught.value.hint
    with pytest.raises(ConfigError, match="no setting hoodie") as caught:
        check_known(["hoodie.zzz"], ["hoodie.parquet.max.file.size"])
    assert caught.value.near == ()


def test_settings_of_others_pass():
    check_known(["spark.sql.x", "hoodie.other", "primaryKey"], ["hoodie.other"])


@pytest.mark.parametrize("name", ["hoodie.parquet.max.file.size", "hoodie.write.lock.wait_time_ms"])
def test_a_number_that_is_none_is_told_in_words(name):
    with pytest.raises(ConfigError, match="whole number") as raised:
        WriteConfig.parse({name: "abc"})
    assert "int()" not in str(raised.value)
