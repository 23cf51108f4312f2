#!/bin/bash
# Makes what people install. `./package.sh --help` says what there is.
set -euo pipefail
cd "$(dirname "$0")"

usage() {
    cat <<HELP
usage: ./package.sh [--try] [FORM]...

Builds the release and writes to target/package:

  tarball   wavetap-VERSION-x86_64-linux.tar.gz: bin/, lib/wavetap/, man pages and completions; runs from any folder
  deb       wavetap_VERSION_amd64.deb
  wheel     wavetap-VERSION-py3-none-linux_x86_64.whl: the command, its libraries and the module for Python

All three without a FORM. The wheel needs python3 with venv and fetches maturin from PyPI; the deb needs dpkg-deb.

  --try     then installs each in a bare Debian 12 that has neither Rust nor this checkout, and profiles, checks and
            explains programs there; needs root, debootstrap and network to Debian's packages
HELP
}

forms=()
try=0
for option in "$@"; do
    case $option in
        --try) try=1 ;;
        tarball | deb | wheel) forms+=("$option") ;;
        -h | --help) usage; exit 0 ;;
        *) echo "package.sh: unknown option or form $option" >&2; usage >&2; exit 2 ;;
    esac
done
[ ${#forms[@]} -gt 0 ] || forms=(tarball deb wheel)

die() {
    echo "package.sh: $*" >&2
    exit 1
}

maturin=1.16.0
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
out=$PWD/target/package
name=wavetap-$version-x86_64-linux
stage=$out/$name
mkdir -p "$out"

# --- what all of them have
cargo build --release --locked
rm -rf "$stage"
mkdir -p "$stage"/{bin,lib/wavetap,share/man/man1,share/doc/wavetap}
install -s target/release/wavetap "$stage/bin/wavetap"
for library in libamdhip64 libwavetap_kfd libwavetap_hsa libwavetap_ranges; do
    built=target/release/$library.so
    [ -e "$built" ] || built=target/release/deps/$library.so
    install -s -m 644 "$built" "$stage/lib/wavetap/$library.so"
done
"$stage/bin/wavetap" man -o "$stage/share/man/man1"
gzip -9n "$stage"/share/man/man1/*.1
completions() {
    mkdir -p "$stage/share/$2"
    "$stage/bin/wavetap" completions "$1" >"$stage/share/$2/$3"
}
completions bash bash-completion/completions wavetap
completions zsh zsh/vendor-completions _wavetap
completions fish fish/vendor_completions.d wavetap.fish
install -m 644 README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$stage/share/doc/wavetap/"
# The licences of what is linked ask that their texts come with it.
cargo metadata --format-version 1 --locked --filter-platform x86_64-unknown-linux-gnu |
    python3 packaging/notices.py >"$stage/share/doc/wavetap/THIRD-PARTY.txt"

made=()
tarball() {
    made+=("$out/$name.tar.gz")
    tar -C "$out" --owner=0 --group=0 --sort=name -czf "$out/$name.tar.gz" "$name"
}

deb() {
    local root=$out/deb needed
    rm -rf "$root"
    mkdir -p "$root/usr" "$root/DEBIAN"
    cp -a "$stage/." "$root/usr/"
    # The newest version of a symbol of the C library that is asked for.
    needed=$(objdump -T "$stage/bin/wavetap" "$stage"/lib/wavetap/*.so | grep -o 'GLIBC_[0-9.]*' | sort -Vu |
        tail -n 1)
    cat >"$root/usr/share/doc/wavetap/copyright" <<COPYRIGHT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: wavetap

Files: *
Copyright: the Wavetap contributors
License: MIT or Apache-2.0
Comment: the texts are in LICENSE-MIT and LICENSE-APACHE, those of linked packages in THIRD-PARTY.txt
COPYRIGHT
    cat >"$root/DEBIAN/control" <<CONTROL
Package: wavetap
Version: $version
Architecture: amd64
Maintainer: $(git config user.name || echo maintainers) <$(git config user.email || echo maintainers@localhost)>
Installed-Size: $(du -sk "$root/usr" | cut -f 1)
Depends: libc6 (>= ${needed#GLIBC_}), libgcc-s1
Section: devel
Priority: optional
Description: see which branches of a GPU program diverge, and what its waves wait for
 Wavetap rewrites the AMD GPU code inside a HIP executable so that it measures
 itself, runs it, and explains the counts: from the binary alone, on a GPU or on
 the built-in emulator.
CONTROL
    made+=("$out/wavetap_${version}_amd64.deb")
    dpkg-deb --root-owner-group --build "$root" "$out/wavetap_${version}_amd64.deb" >/dev/null
}

wheel() {
    local venv=$out/venv
    "$venv/bin/maturin" --version 2>/dev/null | grep -q "$maturin" || {
        python3 -m venv "$venv"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "maturin==$maturin"
    }
    rm -rf python/wavetap.data
    mkdir -p python/wavetap.data/data/lib
    cp -a "$stage/lib/wavetap" python/wavetap.data/data/lib/
    mkdir -p python/wavetap.data/data/share/doc
    cp -a "$stage/share/doc/wavetap" python/wavetap.data/data/share/doc/
    rm -f "$out"/*.whl
    # What the wheel needs of the system is said in its README: a tag of manylinux would promise more than was tried.
    (cd python && "$venv/bin/maturin" build --quiet --release --locked --compatibility linux --out "$out")
    rm -rf python/wavetap.data
    made+=("$out"/*.whl)
}

for form in "${forms[@]}"; do
    "$form"
done
(cd "$out" && sha256sum "${made[@]##*/}" >SHA256SUMS)
for file in "${made[@]}"; do
    echo "$(du -h "$file" | cut -f 1) ${file#"$PWD/"}"
done

if [ "$try" = 1 ]; then
    [ "$(id -u)" = 0 ] || die "--try needs root"
    command -v debootstrap >/dev/null || die "--try needs debootstrap"
    exec packaging/try.sh "${made[@]}"
fi
