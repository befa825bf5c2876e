import pyarrow as pa
import pytest

from hudi_sql.storage.base_file.key_order import java_min_max


@pytest.mark.parametrize(
    ("keys", "bounds"),
    [
        (["9", "10", None], ("10", "9")),
        ([None, None], None),
        ([], None),
        ([""], ("", "")),
        (["\uffee", "\U0001f389", "a"], ("a", "\uffee")),
        (["\U0001f389", "\ue000"], ("\U0001f389", "\ue000")),
        (["\ud7ff", "\U0010ffff", "\uffff"], ("\ud7ff", "\uffff")),
        (["a\U0001f389b\uffee", "a\U0001f389b\U0001f389"], ("a\U0001f389b\U0001f389", "a\U0001f389b\uffee")),
    ],
)
def test_bounds_are_in_the_order_of_java(keys, bounds):
    assert java_min_max(pa.array(keys, pa.string())) == bounds
    if bounds is not None:
        units = sorted((key for key in keys if key is not None), key=lambda key: key.encode("utf-16-be"))
        assert bounds == (units[0], units[-1])


def test_slices_are_seen_alone():
    keys = pa.array(["\U0001f389", "b", "c", "\uffee"])
    assert java_min_max(keys.slice(1, 2)) == ("b", "c")
