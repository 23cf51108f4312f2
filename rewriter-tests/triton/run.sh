#!/bin/bash
# Tries Triton's kernels (docs/guide/triton.md):
# run.sh [--triton VERSION] [--arch GFX]… [--kernel NAME]… [--seeds N]
# Fetches the pinned Triton and numpy from PyPI into a venv below target/, and needs python3 with venv.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
triton=3.9.0
numpy=2.4.6

arguments=()
while [ $# -gt 0 ]; do
    case $1 in
        --triton) triton=${2:?--triton needs a version}; shift 2 ;;
        --triton=*) triton=${1#*=}; shift ;;
        -h | --help) sed -n '2,3s/^# //p' "$0"; exit 0 ;;
        *) arguments+=("$1"); shift ;;
    esac
done

venv=${WAVETAP_TRITON_VENV:-$root/target/triton/venv-$triton}
if ! "$venv/bin/python" -c "import numpy, triton" 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "triton==$triton" "numpy==$numpy"
fi
if [ -z "${WAVETAP:-}" ]; then
    cargo build --quiet --release --manifest-path "$root/Cargo.toml" --workspace
fi
# What Triton compiles depends on these; its own cache may hold another version's code.
export TRITON_DEFAULT_FP_FUSION=1 TRITON_CACHE_DIR=$root/target/triton/cache-$triton
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/python" "$here/harness.py" ${arguments[@]+"${arguments[@]}"}
