# Reads what `cargo test` wrote, both streams in one, and writes a row for each test program: its name, seconds, and
# tests that passed, were ignored and failed, separated by tabs. Unit tests of a crate and tests of its documentation
# are programs of their own. A program without a summary has ended before its tests had: its seconds are `-`.
#
#     awk -f rewriter-tests/test-times.awk LOG

# The row of the program that has run.
function flush_row() {
    if (name != "") {
        printf "%s\t%s\t%d\t%d\t%d\n", name, (summaries ? sprintf("%.1f", seconds) : "-"), passed, ignored, failed
    }
    name = ""
}

function begin(new_name) {
    flush_row()
    name = new_name
    summaries = seconds = passed = ignored = failed = 0
}

# Colours.
{ gsub(/\033\[[0-9;]*m/, "") }

# `Running tests/all/main.rs (target/debug/deps/all-0123456789abcdef)`; the package is that of the unit tests before.
/^ +Running .* \(.*\)$/ {
    program = $0
    sub(/^.*[\/(]/, "", program)
    sub(/(-[0-9a-f]+)?\)$/, "", program)
    if ($2 == "unittests") {
        package = program
        begin(program ", unit tests")
    } else {
        begin(package ": " program)
    }
    next
}

/^ +Doc-tests [A-Za-z0-9_]+$/ {
    begin($2 ", documentation")
    next
}

# `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.52s`
/^test result: .*; finished in [0-9.]+s$/ && name != "" {
    summaries++
    passed += $4
    failed += $6
    ignored += $8
    sub(/s$/, "", $NF)
    seconds += $NF
    next
}

# With the time to compile them.
/^all doctests ran in [0-9.]+s;/ && name != "" {
    sub(/s;$/, "", $5)
    seconds = $5
}

END { flush_row() }
