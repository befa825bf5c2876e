from __future__ import annotations

import pickle

import pytest

from hudi_sql.errors import ConfigError
from hudi_sql.storage.fs.fsspec import FsspecStore
from hudi_sql.storage.fs.object_store import ObjectStore
from hudi_sql.storage.fs.options import StorageOptions
from hudi_sql.storage.fs.uri import open_store


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b"),
        ("/a/../b", "/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a", "/a"),
        ("FILE:///a%20b c", "/a%20b c"),
        ("/odd:name", "/odd:name"),
    ],
)
def test_local_forms(text, root):
    assert open_store(text).uri == f"file:{root}"
    assert open_store(text).local_path("x") == f"{root}/x"


def test_relative_paths_are_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    assert open_store("t").local_path("") == str(tmp_path / "t")
    assert open_store("./t/").local_path("") == str(tmp_path / "t")
    assert open_store("~/t").local_path("") == "/home/someone/t"


def test_memory_stores_of_one_name_are_one():
    open_store("memory://uri-test/t").put("a", b"1")
    assert open_store("memory://uri-test/t/").read("a") == b"1"
    assert open_store("memory://uri-test").read("t/a") == b"1"


@pytest.mark.parametrize("scheme", ["s3", "s3a", "gs"])
def test_buckets_go_through_obstore(scheme):
    store = open_store(f"{scheme}://bucket/a%20b/t/", {"skip_signature": True} if scheme != "gs" else {})
    assert isinstance(store, ObjectStore)
    assert store.uri == f"{scheme}://bucket/a%20b/t"


def test_azure_needs_only_the_long_form():
    assert isinstance(open_store("abfss://c@account.dfs.core.windows.net/t"), ObjectStore)


def test_other_schemes_go_through_fsspec():
    store = open_store("local:///tmp/hudi-sql-none")
    assert isinstance(store, FsspecStore)
    assert store.list("") == []


@pytest.mark.parametrize(
    "text", ["", "file://host/a", "file:a/b", "s3://", "memory:", "memory://", "nosuchscheme://a/b", "a\0b"]
)
def test_bad_locations_are_config_errors(text):
    with pytest.raises(ConfigError) as caught:
        open_store(text)
    assert caught.value.hint


def test_unknown_storage_options_are_config_errors():
    with pytest.raises(ConfigError, match="bogus"):
        open_store("s3://b/t", {"bogus_option": "1"})


def test_secrets_do_not_show():
    options = StorageOptions(
        {
            "key": "AKIA",
            "secret": "hush1",
            "AWS_SESSION_TOKEN": "hush2",
            "fs.s3a.secret.key": "hush3",
            "account_key": "hush4",
            "aws_access_key_id": "AKIB",
            "region": "eu-north-1",
        }
    )
    shown = repr(options)
    assert "hush" not in shown
    assert "AKIA" not in shown
    assert "AKIB" in shown
    assert "eu-north-1" in shown
    assert pickle.loads(pickle.dumps(options)) == options


def test_options_of_other_tools_are_renamed():
    options = StorageOptions(
        {"key": "a", "secret": "b", "endpoint_url": "http://x", "anon": False, "timeout": 5, "no": None}
    )
    assert dict(options.renamed("s3")) == {
        "access_key_id": "a",
        "secret_access_key": "b",
        "endpoint": "http://x",
        "skip_signature": "false",
        "timeout": "5",
    }


def test_contradicting_options_are_refused():
    same = StorageOptions({"key": "a", "access_key": "a"})
    assert dict(same.renamed("s3")) == {"access_key_id": "a"}
    with pytest.raises(ConfigError, match="access_key_id"):
        StorageOptions({"key": "a", "access_key": "b"}).renamed("s3")


def test_later_options_win():
    assert dict(StorageOptions({"A": 1, "b": 2}).merged({"a": 3})) == {"a": "3", "b": "2"}


@pytest.mark.parametrize("options", [{"a": object()}, {"a": ["x"]}, {1: "x"}])
def test_unusable_option_values_are_config_errors(options):
    with pytest.raises(ConfigError):
        StorageOptions(options)
