#!/bin/sh
# Compiles the OpenCL kernels of darktable for Ponte Vecchio, for the test `oracle`: compile-kernels.sh FOLDER.
# Needs the Debian packages intel-opencl-icd (ocloc) and libigc-tools (iga64). Takes minutes.
set -eu
folder=${1:?a folder for the zebins}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download darktable
dpkg-deb -x darktable_*.deb .
kernels=$work/usr/share/darktable/kernels
for source in "$kernels"/*.cl; do
    name=$(basename "$source" .cl)
    ocloc compile -file "$source" -device pvc -output "$folder/$name.zebin" -output_no_suffix \
        -options "-I $kernels" -internal_options "-cl-intel-allow-zebin" > "$work/log" 2>&1 ||
        { echo "$name: not compiled"; cat "$work/log"; }
    rm -f "$folder"/*.spv
done
ls "$folder" | wc -l
