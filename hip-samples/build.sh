#!/bin/sh
# Builds every sample for three targets from source:
# hip-samples/build.sh [-o FOLDER] [NAME...] [-- EXTRA COMPILER FLAGS]
# Needs clang++-19, lld-19, llvm-19, rocm-device-libs and libamdhip64-dev (Debian or Ubuntu package names). The result
# has no path of this machine in it, so two builds with the same packages are equal byte for byte.
set -eu
cd "$(dirname "$0")/src"
out=../bin
names=
while [ $# -gt 0 ]; do
    case $1 in
        -o) case $2 in /*) out=$2 ;; *) out=$OLDPWD/$2 ;; esac; shift 2 ;;
        --) shift; break ;;
        *) names="$names ${1%.hip}"; shift ;;
    esac
done
[ -n "$names" ] || names=$(ls *.hip | sed 's/\.hip$//')
mkdir -p "$out"

clang=${CLANGXX:-clang++-19}
library=$(mktemp -d)
trap 'rm -rf "$library"' EXIT
../bitcode.sh "$library"

for name in $names; do
    case $name in
        o0) level='-O0 -Xarch_device -g -ffunction-sections -Xoffload-linker --gc-sections' ;;
        *) level='-O2 -Xarch_device -gline-tables-only' ;;
    esac
    "$clang" -w -x hip -std=c++17 $level \
        --offload-arch=gfx90a --offload-arch=gfx906 --offload-arch=gfx942 --rocm-device-lib-path="$library" \
        -fdebug-compilation-dir=. -ffile-prefix-map="$PWD"=. -ffile-prefix-map=/usr/= -ffile-prefix-map="$library"= \
        -cuid="$name" \
        "$name.hip" -o "$out/$name" -lamdhip64 "$@"
done
