#!/bin/sh
# Builds other kinds of file from the same sources into a folder: hip-samples/variants.sh FOLDER
#   no-pie          a position-dependent executable
#   shared.so       a shared library (its kernels are launched by the exported function `main`)
#   compressed      --offload-compress: a CCOB v2 bundle
#   v4 v5 v6        -mcode-object-version
#   two-bundles     two translation units without -fgpu-rdc: two concatenated bundles and two wrappers
#   rdc             -fgpu-rdc: one linked device image
#   twins           the same kernels, by the same names, in two translation units: two code objects with them
#                   in one file
#   new-driver      --offload-new-driver
#   new-driver-rdc  --offload-new-driver -fgpu-rdc: bundled by the linker wrapper
#   harmless        kernels with findings of the strict mode: an argument says which
#   no-sizes        kernels' symbols without size, as some compilers leave them
#   features        target ids with xnack+ and xnack- beside each other
#   NAME.GFX.co     bare code objects
#   NAME.hipfb      a bare bundle
#   NAME.packed.hipfb  a compressed one
# and what is not linked yet:
#   object.o relocatable.o new-driver.o archive.a device.bc device.o
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

clang=${CLANGXX:-clang++-19}
"$here/bitcode.sh" "$work"
cd "$here/src"
hip() {
    "$clang" -w -x hip -std=c++17 -O2 -Xarch_device -gline-tables-only --rocm-device-lib-path="$work" \
        -fdebug-compilation-dir=. -ffile-prefix-map="$PWD"=. -ffile-prefix-map=/usr/= "$@"
}

# The compiler takes one core, and most of this has nothing to do with each other.
started=
at_once() {
    "$@" &
    started="$started $!"
}

two_units() {
    hip --offload-arch=gfx90a -c divergence.hip -o "$work/one.o"
    hip --offload-arch=gfx90a -Dmain=unused_main -c vectoradd.hip -o "$work/two.o"
    hip --offload-arch=gfx90a -Dmain=unused_main -c divergence.hip -o "$work/twin.o"
    "$clang" "$work/one.o" "$work/two.o" -o "$out/two-bundles" -lamdhip64
    "$clang" -Wl,-z,muldefs "$work/one.o" "$work/twin.o" -o "$out/twins" -lamdhip64
}

# Assembled again without the sizes of symbols, and bundled by hand.
without_sizes() {
    hip --offload-arch=gfx90a --offload-device-only -S divergence.hip -o "$work/sized.s"
    sed '/^[[:space:]]*\.size[[:space:]]/d' "$work/sized.s" >"$work/unsized.s"
    "$clang" -target amdgcn-amd-amdhsa -mcpu=gfx90a -c "$work/unsized.s" -o "$out/device.o"
    "$clang" -target amdgcn-amd-amdhsa -mcpu=gfx90a "$work/unsized.s" -o "$work/unsized.co"
    clang-offload-bundler-19 -type=o -bundle-align=4096 \
        -targets=host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--gfx90a \
        -input=/dev/null -input="$work/unsized.co" -output="$work/unsized.hipfb"
    hip --offload-arch=gfx90a --offload-host-only -Xclang -fcuda-include-gpubinary -Xclang "$work/unsized.hipfb" \
        -c divergence.hip -o "$work/unsized.o"
    "$clang" "$work/unsized.o" -o "$out/no-sizes" -lamdhip64
}

archive() {
    hip --offload-arch=gfx90a -c divergence.hip -o "$out/object.o"
    rm -f "$out/archive.a"
    ar rc "$out/archive.a" "$out/object.o"
}

at_once two_units
at_once without_sizes
at_once archive
at_once hip --offload-arch=gfx90a ../harmless.hip -o "$out/harmless" -lamdhip64
at_once hip --offload-arch=gfx90a -fno-pie -no-pie divergence.hip -o "$out/no-pie" -lamdhip64
at_once hip --offload-arch=gfx90a -fPIC -shared divergence.hip -o "$out/shared.so" -lamdhip64
at_once hip --offload-arch=gfx90a --offload-arch=gfx906 --offload-compress divergence.hip -o "$out/compressed" \
    -lamdhip64
for version in 4 5 6; do
    at_once hip --offload-arch=gfx90a -mcode-object-version=$version two_kernels.hip -o "$out/v$version" -lamdhip64
done
at_once hip --offload-arch=gfx90a -fgpu-rdc divergence.hip -o "$out/rdc" -lamdhip64
at_once hip --offload-arch=gfx90a:xnack+ --offload-arch=gfx90a:xnack- divergence.hip -o "$out/features" -lamdhip64
for target in gfx90a gfx906 gfx908 gfx900; do
    at_once hip --offload-arch=$target --offload-device-only --no-gpu-bundle-output vectoradd.hip \
        -o "$out/vectoradd.$target.co"
done
at_once hip --offload-arch=gfx90a --offload-arch=gfx906 --offload-device-only --gpu-bundle-output vectoradd.hip \
    -o "$out/vectoradd.hipfb"
at_once hip --offload-arch=gfx90a --offload-arch=gfx906 --offload-device-only --gpu-bundle-output \
    --offload-compress vectoradd.hip -o "$out/vectoradd.packed.hipfb"
at_once hip --offload-arch=gfx90a --offload-arch=gfx906 --offload-new-driver divergence.hip -o "$out/new-driver" \
    -lamdhip64
at_once hip --offload-arch=gfx90a --offload-new-driver -fgpu-rdc divergence.hip -o "$out/new-driver-rdc" -lamdhip64
at_once hip --offload-arch=gfx90a -fgpu-rdc -c divergence.hip -o "$out/relocatable.o"
at_once hip --offload-arch=gfx90a --offload-new-driver -fgpu-rdc -c divergence.hip -o "$out/new-driver.o"
at_once hip --offload-arch=gfx90a --offload-device-only --no-gpu-bundle-output -emit-llvm -c vectoradd.hip \
    -o "$out/device.bc"

for process in $started; do
    wait "$process"
done
