from __future__ import annotations

import zipfile

import pytest

from hudi_sql.storage.properties.checksum import has_wrong_checksum, table_checksum
from hudi_sql.storage.properties.java_properties import decode_properties, encode_properties
from tests.golden_tables import TABLES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", {}),
        (b"\n\r\n  \t\n", {}),
        (b"# c\n! c\n  # c\na=1", {"a": "1"}),
        (b"a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        (b"a = 1 ", {"a": "1 "}),
        (b"a : 1", {"a": "1"}),
        (b"a 1", {"a": "1"}),
        (b"a\t=\f1", {"a": "1"}),
        (b"a==1", {"a": "=1"}),
        (b"a", {"a": ""}),
        (b"a=", {"a": ""}),
        (b"=b", {"": "b"}),
        (b"a=1\na=2", {"a": "2"}),
        (b"a=x:y=z#w!", {"a": "x:y=z#w!"}),
        (b"a=x\\:y\\=z\\#w\\!", {"a": "x:y=z#w!"}),
        (b"a\\=b\\:c\\ d=1", {"a=b:c d": "1"}),
        (b"a=x\\\n   y\\\n\tz\nb=1", {"a": "xyz", "b": "1"}),
        (b"a=x\\\\\nb=1", {"a": "x\\", "b": "1"}),
        (b"a=x\\\\\\\n  b=1", {"a": "x\\b=1"}),
        (b"a=1\\\n# no comment here", {"a": "1# no comment here"}),
        (b"a=x\\", {"a": "x"}),
        (b"a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
        (b"a=\\u00e9\\u4E2d", {"a": "é中"}),
        (b"a=\\uD834\\uDD1E", {"a": "𝄞"}),
        (b"a=\xe9", {"a": "é"}),
        (b"\xef\xbb\xbf=x", {"ï»¿": "x"}),
    ],
)
def test_texts_are_read_as_java_does(text, expected):
    assert decode_properties(text) == expected


@pytest.mark.parametrize("text", [b"a=\\u12", b"a=\\uzzzz", b"a=\\u", b"\\u1=2"])
def test_broken_unicode_escapes_are_refused(text):
    with pytest.raises(ValueError, match="malformed"):
        decode_properties(text)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("a", "b", b"a=b\n"),
        ("a b", " b c ", b"a\\ b=\\ b c \n"),
        ("a=b", "c:d=e#f!g", b"a\\=b=c\\:d\\=e\\#f\\!g\n"),
        ("k", "\t\n\r\f\\", b"k=\\t\\n\\r\\f\\\\\n"),
        ("é", "中𝄞\x00\x7f", b"\\u00E9=\\u4E2D\\uD834\\uDD1E\\u0000\\u007F\n"),
        ("", "", b"=\n"),
    ],
)
def test_texts_are_written_as_java_does(key, value, text):
    assert encode_properties({key: value}) == text
    assert decode_properties(text) == {key: value}


def test_comments_stay_comments():
    text = encode_properties({"a": "1"}, comments=["one\nb=2", "two"])
    assert decode_properties(text) == {"a": "1"}


def test_checksums_are_those_of_spark():
    assert table_checksum("default", "t1") == "3709403181"
    assert table_checksum("", "t1_metadata") == "3301073700"
    assert not has_wrong_checksum({"hoodie.table.name": "t1"})
    good = {
        "hoodie.table.name": "t1",
        "hoodie.database.name": "default",
        "hoodie.table.checksum": "3709403181",
    }
    assert not has_wrong_checksum(good)
    assert has_wrong_checksum({**good, "hoodie.database.name": "other"})
    assert has_wrong_checksum({**good, "hoodie.table.checksum": "x"})


def test_golden_properties_survive_byte_for_byte():
    names = sorted(TABLES.glob("*.zip"))
    assert len(names) > 30
    for path in names:
        with zipfile.ZipFile(path) as archive:
            text = archive.read(f"{path.stem}/.hoodie/hoodie.properties")
        body = b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(b"#"))
        assert encode_properties(decode_properties(text)) == body, path.stem
