# Sourced by quickstart.sh and tests/run.sh: a virtual environment that is made once and then reused.
# make_environment FOLDER "INSTALL ARGUMENTS" sets $venv.

find_python() {
  for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return 0
    fi
  done
  echo "hudi_sql needs Python 3.11 or newer: set PYTHON to one" >&2
  return 1
}

make_environment() {
  venv="$1"
  # What is installed follows the project file: a changed one installs again.
  wanted="$2 $(cksum < pyproject.toml)"
  if [ "$(cat "$venv/.wanted" 2>/dev/null)" = "$wanted" ] && [ -x "$venv/bin/python" ]; then
    return 0
  fi
  python="$(find_python)" || exit 1
  echo "installing into $venv (first run only)"
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check uv
  # shellcheck disable=SC2086
  "$venv/bin/uv" pip install -q --python "$venv/bin/python" $2
  printf '%s' "$wanted" > "$venv/.wanted"
}
