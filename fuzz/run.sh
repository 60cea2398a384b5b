#!/usr/bin/env bash
# run.sh [SECONDS]: feeds every fuzz target hostile input for that long (60 s each without it).
# Needs the nightly toolchain and cargo-fuzz, which it installs; where that cannot be, it says so and fails,
# or with ALLOW_MISSING=1 says so and passes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
duration=${1:-60}
# The flags differ from those of all other builds, so this one has a place of its own.
export CARGO_TARGET_DIR="${GRANARY_CACHE:-$HOME/.cache/granary}/fuzz-target"

missing() {
    echo "fuzz: NOT RUN: $1" >&2
    if [[ "${ALLOW_MISSING-}" == 1 ]]; then exit 0; fi
    exit 3
}

if ! cargo +nightly --version >/dev/null 2>&1; then
    missing "there is no nightly toolchain; install it with 'rustup toolchain install nightly'"
fi
if ! command -v cargo-fuzz >/dev/null; then
    CARGO_TARGET_DIR="$CARGO_TARGET_DIR-tool" cargo install --locked cargo-fuzz ||
        missing "cargo-fuzz could not be installed; try 'cargo install cargo-fuzz'"
fi

# The code under test has no unsafe blocks, so the address sanitizer would only cost time.
cargo +nightly fuzz build --fuzz-dir . --sanitizer none
corpora=$(mktemp -d)
trap 'rm -rf "$corpora"' EXIT
for target in bodies nbd patches selectors schemas wire_frames replica_requests; do
    echo "fuzz: $target for $duration s"
    cp -r "corpus/$target" "$corpora/$target"
    # A seed makes a run repeatable; 0 draws one.
    if ! cargo +nightly fuzz run --fuzz-dir . --sanitizer none "$target" "$corpora/$target" -- \
        -max_total_time="$duration" -seed="${FUZZ_SEED:-0}" -timeout=10 -rss_limit_mb=2048 -max_len=4096 \
        >"$corpora/log" 2>&1; then
        tail -n 60 "$corpora/log"
        echo "fuzz: $target failed; the input is in fuzz/artifacts/$target" >&2
        exit 1
    fi
    grep '^Done' "$corpora/log"
done
echo "fuzz: nothing found"
