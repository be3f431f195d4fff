#!/usr/bin/env bash
# Installs what the tests need, and runs them all; the last line is `N passed, N failed, N skipped`.
#
#   scripts/test.sh             everything
#   scripts/test.sh STEP...     only these: format clippy doc deny shell man rust bats readers corpus stores
#
# One build of one profile serves every step. Logs of the steps are below target/test-logs.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
export CARGO_TERM_COLOR=never
logs=$CARGO_TARGET_DIR/test-logs
python=$CARGO_TARGET_DIR/venv/bin/python
mkdir -p "$logs"
passed=0 failed=0 skipped=0 broken=()
steps=("$@")

# Runs one step; its own count of tests is taken from its log by `count`, else it counts as one test.
step() { # name count command...
    local name=$1 count=$2 started=$SECONDS status=0 good=0 bad=0 left=0
    shift 2
    if ((${#steps[@]})) && [[ " ${steps[*]} " != *" $name "* ]]; then
        return
    fi
    printf '== %s\n' "$name"
    "$@" > "$logs/$name.log" 2>&1 < /dev/null || status=$?
    if [[ $count != one ]]; then
        read -r good bad left < <("$count" "$logs/$name.log")
    fi
    if ((good + bad + left == 0)); then
        ((status == 0)) && good=1
    fi
    if ((status != 0 && bad == 0)); then
        bad=1
    fi
    ((passed += good, failed += bad, skipped += left))
    if ((bad)); then
        broken+=("$name")
        printf 'FAILED (exit status %d); the end of %s:\n' "$status" "${logs#"$root"/}/$name.log"
        tail -n 60 "$logs/$name.log"
    fi
    printf '== %s: %d passed, %d failed, %d skipped, %d s\n' "$name" "$good" "$bad" "$left" $((SECONDS - started))
}

# cargo test's "test result: ok. 3 passed; 0 failed; 1 ignored; ..." of each test binary.
rust_count() {
    awk '/^test result:/ { good += $4; bad += $6; left += $8 } END { print good + 0, bad + 0, left + 0 }' "$1"
}
# TAP: "ok 1 name", "ok 2 name # skip why", "not ok 3 name".
tap_count() {
    awk '/^ok .*# skip/ { left++; next } /^ok / { good++ } /^not ok / { bad++ } END { print good + 0, bad + 0, left + 0 }' "$1"
}
# The last "name: N passed, N failed, N skipped".
summary_count() {
    awk '/[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { good = $2; bad = $4; left = $6 }
        END { print good + 0, bad + 0, left + 0 }' "$1"
}

deny() {
    # Building cargo-deny takes longer than all the tests: it runs where it is installed.
    if command -v cargo-deny > /dev/null; then
        # It looks at the crates of every system, of which a build fetches only its own.
        cargo fetch --locked && cargo deny --offline check licenses bans sources
    else
        echo "deny: 0 passed, 0 failed, 1 skipped"
    fi
}

clippy() {
    cargo clippy --locked --all-targets -- -D warnings || return
    # The fuzz targets too, with crates of the same versions, so that few are built again.
    [[ fuzz/Cargo.lock -nt Cargo.lock ]] || cp Cargo.lock fuzz/Cargo.lock
    cargo clippy --manifest-path fuzz/Cargo.toml --target-dir target -- -D warnings
}

doc() {
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items
}

shell() {
    shellcheck scripts/*.sh scripts/fixtures/*.sh .ci/run tests/bats/*.bats tests/bats/*.bash \
        tests/servers/*.bash tests/servers/*/*.sh
}

man() {
    local report
    report=$(mandoc -T lint -W warning man/bergfs.1)
    printf '%s\n' "$report"
    [[ -z $report ]]
}

rust() {
    # The corpus is looked for beside the checkout by the Rust tests too.
    cargo test --locked --no-fail-fast
}

bats_suites() {
    bats --tap tests/bats
}

readers() {
    "$python" tests/readers/matrix.py
}

stores() {
    "$CARGO_TARGET_DIR/venv-servers/bin/python" tests/stores/run.py
}

corpus() {
    "$python" tests/corpus.py
}

bash scripts/install.sh --tests || exit 1

step format one cargo fmt --check
# The longest part of a first run: this builds everything that the steps after it use.
step rust rust_count rust
step clippy one clippy
step doc one doc
step deny summary_count deny
step shell one shell
step man one man
if [[ -x $CARGO_TARGET_DIR/debug/bergfs ]] || cargo build --locked; then
    export BERGFS=$CARGO_TARGET_DIR/debug/bergfs
    step bats tap_count bats_suites
    step readers summary_count readers
    step corpus summary_count corpus
    step stores summary_count stores
fi
for name in readers corpus stores; do
    [[ -f $logs/$name.log ]] && grep -E 'tables read and agree|NOT RUN|SKIPPED|NOT INSTALLED|^[0-9]+ views of' "$logs/$name.log"
done
((${#broken[@]})) && printf 'failed: %s\n' "${broken[*]}"
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0 && passed > 0))
