#!/bin/bash
# Installs each package in a bare Debian 12 of its own and uses it there: try.sh PACKAGE...
# Needs root and debootstrap. The roots are made below target/package/.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
out=$root/target/package
base=$out/debian12

mounted=()
finish() {
    for place in ${mounted[@]+"${mounted[@]}"}; do
        umount "$place" || true
    done
}
trap finish EXIT

if [ ! -e "$base/usr/bin/python3" ]; then
    # The mirror that this machine uses.
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
    rm -rf "$base"
    echo "try.sh: making a bare Debian 12"
    # With what a user of Python has, for the wheel; the others use none of it.
    debootstrap --variant=minbase --include=python3-venv bookworm "$base" "$mirror" >"$out/debootstrap.log" 2>&1 ||
        { tail "$out/debootstrap.log" >&2; exit 1; }
fi

# Runs a script in a fresh copy of the root, in which the package and programs are.
inside() {
    local package=$1 script=$2 copy=$out/try
    finish
    mounted=()
    rm -rf "$copy"
    cp -a "$base" "$copy"
    mkdir -p "$copy/try/samples"
    cp "$package" "$copy/try/"
    cp "$root"/hip-samples/bin/{divergence,vectoradd,spmv} "$copy/try/samples/"
    cp -a "$root/python/tests" "$copy/try/python-tests"
    mount -t proc proc "$copy/proc"
    mounted+=("$copy/proc")
    chroot "$copy" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 FILE="/try/${package##*/}" \
        bash -euo pipefail -c "$common$script"
}

# What every package has to do, whatever way it came.
# shellcheck disable=SC2016
common='
cd /try
! command -v cargo rustc >/dev/null
works() {
    local wavetap=$1 text
    "$wavetap" --version
    "$wavetap" doctor | grep -q "the counts are right"
    text=$("$wavetap" profile -o d.profile -- samples/divergence)
    grep -q "diverges in 50 %" <<<"$text"
    grep -q "ran on the built-in emulator: gfx90a" <<<"$text"
    "$wavetap" merge d.profile d.profile -o twice.profile
    "$wavetap" report twice.profile --binary samples/divergence | grep -q "64 waves"
    "$wavetap" check -- samples/vectoradd | tail -n 1
    "$wavetap" slice samples/spmv --target gfx90a | grep -q "s_waitcnt"
    "$wavetap" export parquet samples/divergence --counters d.profile -o dataset
    test -s dataset/_wavetap.json
    "$wavetap" export lcov samples/divergence --counters d.profile | grep -q "^DA:7,32$"
}
'

for package in "$@"; do
    echo "try.sh: ${package##*/}"
    case $package in
        *.tar.gz)
            # shellcheck disable=SC2016
            inside "$package" '
                tar -C /opt -xzf "$FILE"
                works /opt/wavetap-*/bin/wavetap
                # From anywhere.
                mv /opt/wavetap-* "/opt/an other place"
                "/opt/an other place/bin/wavetap" profile -- samples/divergence | grep -q "diverges in 50 %"
                test -s "/opt/an other place/share/doc/wavetap/THIRD-PARTY.txt"'
            ;;
        *.deb)
            # shellcheck disable=SC2016
            inside "$package" '
                dpkg -i "$FILE"
                works wavetap
                test -s /usr/share/man/man1/wavetap-profile.1.gz
                bash -c ". /usr/share/bash-completion/completions/wavetap && complete -p wavetap"
                dpkg -r wavetap
                test ! -e /usr/bin/wavetap'
            ;;
        *.whl)
            # shellcheck disable=SC2016
            inside "$package" '
                python3 -m venv /venv
                /venv/bin/python -m pip install --quiet --no-index "$FILE"
                works /venv/bin/wavetap
                cd / && WAVETAP_SAMPLES_FOLDER=/try/samples /venv/bin/python -m unittest discover -s /try/python-tests'
            ;;
        *) echo "try.sh: what is $package?" >&2; exit 2 ;;
    esac
    echo "try.sh: ${package##*/}: works"
done
