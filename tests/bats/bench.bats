#!/usr/bin/env bats
# scripts/bench.sh at a small scale: that it runs, and that every answer is right. The times mean nothing here.

@test "the bench runs at a small scale and every answer is right" {
    local root=$BATS_TEST_DIRNAME/../..
    local target=${CARGO_TARGET_DIR:-$root/target}
    export BERGFS=${BERGFS:-$target/debug/bergfs}
    run "$root/scripts/bench.sh" --scale 0.01 --runs 1 --tables dv,eqdel,many --peers Polars
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"| bergfs, second |"* ]]
    [[ $output == *"| Polars |"* ]]
    [[ $output != *"WRONG"* ]]
}
