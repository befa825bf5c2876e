"""The shape of the code base: sizes, exports, what importing it costs."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from hudi_sql import errors

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path for package in ("hudi_sql", "engine_adapters") for path in (ROOT / package).rglob("*.py")
)
LONGEST = 700
TOP_LEVEL = {"pyproject.toml", "hudi_sql", "engine_adapters", "tests", "sql_examples", "docs", "README.md"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module_is_short_and_says_what_it_exports(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    tree = ast.parse(text)
    public = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    exported = [
        element.value
        for node in tree.body
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets)
        for element in getattr(node.value, "elts", [])
    ]
    assert set(public) <= set(exported), "public names that __all__ does not list"


def test_nothing_else_lies_beside_the_fixed_top_level() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    found = {line.split("/")[0] for line in listed.stdout.splitlines()}
    assert {name for name in found if not name.startswith(".")} <= TOP_LEVEL


def test_importing_the_package_loads_no_engine_and_no_cloud_library() -> None:
    code = (
        "import sys, hudi_sql; "
        "print(sorted({n.split('.')[0] for n in sys.modules} & "
        "{'duckdb', 'datafusion', 'pandas', 'polars', 'obstore', 'fsspec', 'boto3', 's3fs'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_pickles_and_copies_with_its_facts(name: str) -> None:
    kind = getattr(errors, name)
    error = kind("what is wrong", hint="what to do", table="t", part="the WHERE clause", column="c")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is kind
        assert (str(twin), twin.column, twin.hint) == (str(error), "c", "what to do")
    assert issubclass(kind, errors.HudiSqlError)


def test_every_error_class_is_exported() -> None:
    defined = {n for n, v in vars(errors).items() if inspect.isclass(v) and v.__module__ == errors.__name__}
    assert defined == set(errors.__all__)
