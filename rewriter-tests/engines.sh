#!/bin/sh
# Fetches from PyPI what reads datasets in the tests, into a venv below target/: DuckDB, with --all also Polars, Spark
# (which needs Java), and what executes the notebook. Needs python3 with venv. Prints the interpreter.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
venv=$root/target/engines
packages="duckdb==2.0.1"
modules="duckdb"
if [ "${1:-}" = --all ]; then
    packages="$packages polars==2.1.0 pyspark==4.3.0 pandas pyarrow nbconvert ipykernel"
    modules="$modules, polars, pyspark, pandas, pyarrow, nbconvert, ipykernel"
fi
if ! "$venv/bin/python" -c "import $modules" 2>/dev/null; then
    python3 -m venv "$venv"
    # shellcheck disable=SC2086  # one word for each package
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $packages >&2
fi
echo "$venv/bin/python"
