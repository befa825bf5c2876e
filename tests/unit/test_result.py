"""Results: read once as a stream, or held."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from engine_adapters.protocol import EngineQueryError
from hudi_sql.errors import (
    BindError,
    CorruptTableError,
    EngineFailureError,
    ObjectNotFoundError,
    SchemaError,
    StorageError,
    TransientStorageError,
)
from hudi_sql.result import Result, WriteResult, engine_errors
from hudi_sql.storage.fs.local import LocalStore

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})


def stream(fail_after: int | None = None) -> pa.RecordBatchReader:
    def batches():
        for number, batch in enumerate(TABLE.to_batches(max_chunksize=1)):
            if number == fail_after:
                raise EngineQueryError("division by zero", at_bind=False)
            yield batch

    return pa.RecordBatchReader.from_batches(TABLE.schema, batches())


def test_rows_of_a_stream_can_be_had_in_every_form_once_held() -> None:
    result = Result.of_reader(stream())
    assert result.columns == ["a", "b"]
    assert result.fetchone() == (1, "x")
    assert result.fetchall() == [(2, None), (3, "z")]
    assert result.fetchone() is None
    assert result.to_arrow_table() == TABLE
    assert pa.table(result) == TABLE
    assert result.df()["a"].tolist() == [1, 2, 3]
    assert result.pl()["a"].to_list() == [1, 2, 3]


def test_a_stream_is_taken_once() -> None:
    result = Result.of_reader(stream())
    assert result.to_arrow_reader().read_all() == TABLE
    with pytest.raises(EngineFailureError, match="already"):
        result.to_arrow_table()
    with pytest.raises(EngineFailureError, match="already"):
        result.to_arrow_reader()


def test_a_failure_while_rows_are_read_is_one_of_ours() -> None:
    with pytest.raises(EngineFailureError, match="division"):
        Result.of_reader(stream(fail_after=1)).fetchall()
    reader = Result.of_reader(stream(fail_after=1)).to_arrow_reader()
    with pytest.raises(EngineFailureError, match="division"):
        reader.read_all()


def test_errors_keep_the_engines_own_as_their_cause() -> None:
    own = ValueError("no column x")
    ours = EngineQueryError("no column x", at_bind=True)
    ours.__cause__ = own
    with pytest.raises(BindError) as raised, engine_errors():
        raise ours
    assert raised.value.__cause__ is own


def test_names_that_the_user_did_not_write_are_not_told() -> None:
    for said, told in {
        "no cast when casting from source column __hudi_sql_c1": "no cast",
        'no cast when casting from source column "__hudi_sql_s_name"': "no cast when casting from source column name",
        'column "_hudi_sql_slice" is grouped': "column a column of the rewritten query is grouped",
        "no column of mine": "no column of mine",
    }.items():
        with pytest.raises(EngineFailureError) as raised, engine_errors():
            raise EngineQueryError(said, at_bind=False)
        assert raised.value.message == f"The engine failed to run the query: {told}"


def test_shown_rows_are_cut_and_null_is_visible(capsys: pytest.CaptureFixture[str]) -> None:
    Result.of_table(TABLE).show(max_rows=2)
    assert capsys.readouterr().out.splitlines() == [
        "a | b",
        "--+-----",
        "1 | x",
        "2 | NULL",
        "(3 rows, 1 not shown)",
    ]


def test_a_write_is_one_row() -> None:
    write = WriteResult(
        num_inserted_rows=1, num_updated_rows=2, num_deleted_rows=3, num_ignored_rows=4, instant="i"
    )
    assert Result.of_table(write.to_row(), write).fetchone() == (6, 1, 2, 3, 4, "i")


def test_messages_are_one_line_and_say_what_to_do() -> None:
    for kind in (CorruptTableError, SchemaError, StorageError, ObjectNotFoundError, TransientStorageError):
        error = pickle.loads(pickle.dumps(kind("first\n  second", path="x")))
        assert error.message == "first second"
        assert error.hint
        assert kind("x", hint="do this").hint == "do this"


def test_what_stands_in_the_way_of_a_new_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for write in ("create", "put"):
        with pytest.raises(StorageError, match="Not a directory") as raised:
            getattr(LocalStore(f"{tmp_path}/file"), write)("a/b", b"x")
        assert not isinstance(raised.value, ObjectNotFoundError)
        assert "Errno" not in str(raised.value)
