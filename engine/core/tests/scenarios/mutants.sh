#!/usr/bin/env bash
# Puts the bug of each scenario in bug_classes/ into a copy of the core, one at a time, and demands that
# this very scenario fails. Prints a line for each and ends with an error if a mutant does not apply,
# does not build, or survives.
#
#   mutants.sh [SCENARIO.txt ...]      default: all of bug_classes/
#
# MUTANTS_TARGET names a build folder to keep between runs; default: one that is thrown away.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
mkdir "$tree"
for entry in "$root"/*; do
    [[ ${entry##*/} == target ]] || cp -r "$entry" "$tree/"
done
export CARGO_TARGET_DIR=${MUTANTS_TARGET:-$work/target}
export RUST_BACKTRACE=0
cd "$tree"

build() {
    cargo test --quiet --locked -p touchline-core --test scenarios --no-run >"$work/build" 2>&1
}

play() {
    SCENARIOS=$1 timeout 120 cargo test --quiet --locked -p touchline-core --test scenarios \
        every_scenario_holds >"$work/play" 2>&1
}

# The lines of a header that begin with a mark, without it.
part() {
    local line
    while IFS= read -r line; do
        [[ $line == "$1"* ]] && printf '%s\n' "${line#"$1"}"
        [[ "$line " == "$1" ]] && printf '\n'
    done <"$2"
    return 0
}

if (($# == 0)); then
    set -- "$here"/bug_classes/*.txt
fi
build || { cat "$work/build"; exit 1; }

killed=0
failed=0
for scenario; do
    name=$(basename "$scenario" .txt)
    cp "$scenario" "$work/scenario.txt"
    file=$(part '# Mutant: ' "$scenario")
    old=$(part '# - ' "$scenario")
    new=$(part '# + ' "$scenario")
    IFS= read -r -d '' source <"$tree/$file" || true
    if ! play "$work/scenario.txt"; then
        verdict="FAILS WITHOUT THE BUG"
    elif [[ $source != *"$old"* ]]; then
        verdict="DOES NOT APPLY to $file"
    else
        printf '%s' "${source%%"$old"*}$new${source#*"$old"}" >"$tree/$file"
        if ! build; then
            verdict="DOES NOT BUILD: $(grep -m 1 '^error' "$work/build" || true)"
        elif play "$work/scenario.txt"; then
            verdict="SURVIVES"
        else
            verdict=killed
        fi
        printf '%s' "$source" >"$tree/$file"
        build
    fi
    printf '%-60s %s\n' "$name" "$verdict"
    if [[ $verdict == killed ]]; then killed=$((killed + 1)); else failed=$((failed + 1)); fi
done
printf '%d killed, %d not\n' "$killed" "$failed"
((failed == 0))
