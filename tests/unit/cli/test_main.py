"""The command: output, errors, exit codes."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hudi_sql.cli.main import main
from tests.conftest import engines


@engines
def test_statements_run_and_the_last_result_is_printed(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        f"CREATE TABLE t (id INT, name VARCHAR) USING hudi LOCATION '{tmp_path}/t'; "
        "INSERT INTO t VALUES (1, 'a'); SELECT id, name FROM t"
    )
    assert main(["-c", text, "--engine", engine]) == 0
    assert capsys.readouterr().out.splitlines() == ["id | name", "---+-----", "1  | a", "(1 rows)"]


@engines
def test_a_file_runs_in_another_dialect(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "x.sql"
    script.write_text(
        f"create table t (id int) using hudi location '{tmp_path}/t';\ninsert into t values (20L - 1);"
    )
    assert main(["-f", str(script), "--engine", engine, "--dialect", "spark"]) == 0
    assert "num_inserted_rows" in capsys.readouterr().out


@engines
def test_a_failing_statement_is_one_block_and_exit_code_1(
    engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-c", "DROP TABLE nothing_here_at_all PURGE", "--engine", engine]) == 1
    error = capsys.readouterr().err
    assert "Error: " in error
    assert "hint: " in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-c", "SELECT 1", "-f", "x"],
        ["-f", "no/such/file.sql"],
        ["-c", "SELECT 1", "--engine", "oracle"],
        ["-c", "SELECT 1", "--config", "novalue"],
        ["-c", "SELECT 1", "--no-such-option"],
    ],
)
def test_a_wrong_call_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err


def test_help_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "hudi-sql" in capsys.readouterr().out


def test_the_module_runs_as_a_command() -> None:
    code = "import sys; from hudi_sql.cli.main import main; sys.exit(main(['-c', 'SELECT 1', '--engine', 'oracle']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "duckdb" in done.stderr


def test_what_a_file_begins_with_and_what_it_lacks_is_told_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.sql"
    file.write_bytes(b"\xef\xbb\xbfSELECT 1 AS one")
    assert main(["-f", str(file)]) == 0
    assert capsys.readouterr().out.startswith("one")
    for data in (b"", b"-- nothing\n/* at all; */"):
        file.write_bytes(data)
        assert main(["-f", str(file)]) == 0
        assert capsys.readouterr() == ("", "")
    file.write_bytes(b"\xff")
    for path in (file, tmp_path, tmp_path / "nothing"):
        assert main(["-f", str(path)]) == 2
        message = capsys.readouterr().err
        assert "Errno" not in message
        assert "codec" not in message
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"SELECT 7 AS seven")))
    assert main(["-f", "-"]) == 0
    assert capsys.readouterr().out.startswith("seven")
    assert main(["-c", "SELECT 1", "--max-rows", "-1"]) == 2


def test_letters_that_the_output_lacks_are_no_failure() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hudi_sql.cli.main", "-c", "SELECT 'é' AS x"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\xe9" in done.stdout


def test_an_interrupted_command_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hudi_sql.session.Session.sql", interrupt)
    assert main(["-c", "SELECT 1"]) == 130
    assert "Interrupted" in capsys.readouterr().err
