#!/bin/bash
# Builds llvm-access, which says what LLVM says about the registers that instructions read and write, into
# target/llvm-access. It is linked with the Rust toolchain's own libLLVM 22; the only thing that is fetched is its
# headers (Debian's package llvm-22-dev, 60 MB, into target/llvm-access).
#
#   rewriter-tests/llvm-access/build.sh            does nothing when it is already built
#   LLVM_22_INCLUDE=DIR …/build.sh                 headers that are elsewhere: the folder that has llvm/ and
#                                                  llvm-c/ in it
#
# Needs a C++17 compiler (CXX, or else g++, clang++ or clang++-19) and, for the fetching, apt of Debian.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
folder=${CARGO_TARGET_DIR:-target}/llvm-access
program=$folder/llvm-access
die() { echo "build.sh: $*" >&2; exit 1; }

libraries=("$(rustc --print sysroot)"/lib/libLLVM.so.22.1*)
library=${libraries[0]}
[ -s "$library" ] || die "this Rust toolchain has no libLLVM 22.1 ($library): use one from 1.95 on that has"
if [ -x "$program" ] && [ "$program" -nt "$here/access.cpp" ] && ldd "$program" | grep -qF "$library"; then
    echo "$program"
    exit 0
fi
mkdir -p "$folder"

include=${LLVM_22_INCLUDE:-}
if [ -z "$include" ] && [ -d /usr/include/llvm-22/llvm ]; then
    include=/usr/include/llvm-22:/usr/include/llvm-c-22
fi
if [ -z "$include" ]; then
    include=$folder/include/llvm-22:$folder/include/llvm-c-22
    if [ ! -d "$folder/include/llvm-22/llvm" ]; then
        # A private configuration of apt, so that the machine's own sources stay as they are; its own mirror, which is
        # checked with Debian's keys.
        mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' |
            grep -v security | sort -u | head -n 1)
        [ -n "$mirror" ] ||
            die "no Debian mirror in this machine's apt configuration (or no 'apt-get update' yet): set LLVM_22_INCLUDE"
        keys=/usr/share/keyrings/debian-archive-keyring.gpg
        [ -s "$keys" ] || die "no $keys: install debian-archive-keyring"
        work=$(mktemp -d)
        trap 'rm -rf "$work"' EXIT
        mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
        # Fetching drops privileges to _apt, which must be able to write here.
        chmod -R 777 "$work"
        echo "deb [signed-by=$keys] $mirror sid main" >"$work/sources.list"
        options=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
            -o "Dir::State::lists=$work/lists"
            -o "Dir::Cache=$work/cache" -o APT::Get::List-Cleanup=0)
        apt-get -q "${options[@]}" update >&2 || die "cannot read Debian's package lists"
        (cd "$work" && apt-get -q "${options[@]}" download llvm-22-dev >&2) || die "cannot fetch llvm-22-dev"
        mkdir "$work/tree"
        dpkg-deb --fsys-tarfile "$work"/llvm-22-dev_*.deb | tar -x -C "$work/tree" ./usr/include
        rm -rf "$folder/include"
        cp -a "$work/tree/usr/include" "$folder/include.part"
        mv "$folder/include.part" "$folder/include"
    fi
fi
includes=()
IFS=: read -ra folders <<<"$include"
for one in "${folders[@]}"; do includes+=(-isystem "$one"); done

compiler=${CXX:-}
for one in g++ clang++ clang++-19; do
    [ -n "$compiler" ] || ! command -v "$one" >/dev/null || compiler=$one
done
[ -n "$compiler" ] || die "no C++ compiler"
# Without run-time type information, as LLVM itself; the library does not export what its headers check debug builds
# with.
"$compiler" -std=c++17 -O1 -Wall -fno-rtti -DLLVM_DISABLE_ABI_BREAKING_CHECKS_ENFORCING=1 "${includes[@]}" \
    "$here/access.cpp" -o "$program.part" "$library" -Wl,-rpath,"$(dirname "$library")"
[ "$(printf 'gfx900 0102067e\n' | "$program.part" | tail -n 1 | cut -f 2)" = V_MOV_B32_e32_vi ] ||
    die "the program that was built does not answer"
mv "$program.part" "$program"
echo "$program"
