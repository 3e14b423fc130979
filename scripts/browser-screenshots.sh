#!/usr/bin/env bash
# Takes the pictures of docs/browser.md anew: an agent books a berth at a test site, and a
# person helps. Needs what scripts/deps.sh and `scripts/sdks.sh up browsers` install.
#
#   scripts/browser-screenshots.sh [DIR]   write them to DIR; docs/img if not given
set -euo pipefail
cd "$(dirname "$0")/.."
dir=${1:-docs/img}
mkdir -p "$dir"
scripts/sdks.sh up browsers
make -s guest
ATOLL_TEST_ALL=1 ATOLL_PICTURES=$(realpath "$dir") go test -count=1 -run '^TestBrowserTask$' ./internal/testkit/browsertest
large=$(find "$dir" -name 'browser-*' -size +150k)
[[ -z $large ]] || { echo "larger than 150 KB: $large" >&2; exit 1; }
