#!/bin/bash
# Fetches real code that is not ours into target/corpora, for the long tests and the benchmarks: nothing of it is
# committed.
#
#   librocrand.so        Debian's librocrand1: 7 code objects, gfx803 to gfx1030
#   bitsandbytes/        PyPI, 6 libraries, 218 code objects of 25 targets in compressed bundles
#   jax-rocm7-plugin/    PyPI, 3 libraries, 108 code objects of 27 targets in compressed bundles
#   jax-rocm60-plugin/   PyPI, 4 libraries, 44 code objects of 11 targets in plain bundles
#
# What is already there is not fetched again: after a failure, run it again. It needs apt and dpkg, and python3 with
# pip.
# `fetch-corpora.sh NAME…` fetches only those.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${CARGO_TARGET_DIR:-target}/corpora
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

die() {
    echo "fetch-corpora.sh: $*" >&2
    exit 1
}

# All of a fetch happens in here; what is complete is moved to its place in one step.
work=$(mktemp -d "$folder/.part.XXXXXX")
trap 'rm -rf "$work"' EXIT
# Downloading drops privileges to _apt, which must be able to write here.
chmod 755 "$work"

# debian PACKAGE LIBRARY: one library of a Debian package.
debian() {
    local package=$1 library=$2
    [ -s "$folder/$library" ] && return
    command -v apt-get >/dev/null || die "$package: needs apt-get (Debian or one of its children)"
    (cd "$work" && apt-get -q download "$package") ||
        die "$package: apt-get could not download it ('apt-get update' was run?)"
    dpkg-deb -x "$work/$package"_*.deb "$work/tree" || die "$package: cannot be unpacked"
    local found
    found=$(find "$work/tree" -name "$library.*" -type f | head -n 1)
    [ -n "$found" ] || die "$package: holds no $library"
    mv "$found" "$folder/$library"
}

# wheel NAME VERSION SHA256: the libraries with device code of a Python package.
wheel() {
    local name=$1 version=$2 sha256=$3
    [ -d "$folder/$name" ] && return
    python3 -m pip --version >/dev/null 2>&1 || die "$name: needs python3 with pip (Debian: python3-pip)"
    echo "$name==$version --hash=sha256:$sha256" >"$work/$name.txt"
    # For Linux on x86-64 and one version of Python, whatever runs here: other wheels have other digests.
    python3 -m pip --disable-pip-version-check download --quiet --no-deps --only-binary :all: --require-hashes \
        --implementation cp --python-version 3.11 --abi cp311 --abi none \
        --platform manylinux_2_24_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_28_x86_64 \
        --dest "$work/wheels" --requirement "$work/$name.txt" || die "$name $version: pip could not download it"
    mkdir "$work/$name"
    wheel=("$work/wheels/${name//-/_}-$version"-*.whl)
    python3 - "${wheel[@]}" "$work/$name" <<'PYTHON' || die "$name $version: cannot be unpacked"
import os, sys, zipfile
wheel, folder = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        content = archive.read(name) if name.endswith(".so") else b""
        if b".hip_fatbin\0" in content:
            with open(os.path.join(folder, os.path.basename(name)), "wb") as out:
                out.write(content)
sys.exit(None if os.listdir(folder) else "no library with device code")
PYTHON
    mv "$work/$name" "$folder/$name"
}

fetch() {
    case $1 in
        librocrand) debian librocrand1 librocrand.so ;;
        bitsandbytes) wheel "$1" 0.50.2 55348a9a4a21bfd99cf8c7b32fe67b4030ae5c2a05738e03c1747f65fa6ec283 ;;
        jax-rocm7-plugin) wheel "$1" 0.10.2 fc6c3f6641d99916ea1896353a0c27187f1fcddb811768d4607d7e78834571a3 ;;
        jax-rocm60-plugin) wheel "$1" 0.5.0 05414df017d473b77cae3b04e69d199cbdaa2ddb7cff0801edbae84f37a74308 ;;
        *) die "$1 is none of librocrand, bitsandbytes, jax-rocm7-plugin, jax-rocm60-plugin" ;;
    esac
}

[ $# -gt 0 ] || set -- librocrand bitsandbytes jax-rocm7-plugin jax-rocm60-plugin
for name in "$@"; do
    fetch "$name"
done
(cd "$folder" && stat -c '%n %s bytes' -- *.so */*.so)
