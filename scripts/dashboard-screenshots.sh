#!/usr/bin/env bash
# Takes the pictures of docs/dashboard.md anew: a gateway with runs, conversations and a
# month of costs, looked at by Debian's Chromium. Needs what TestDashboard needs: root,
# control groups, chromium-headless-shell and npm.
#
#   scripts/dashboard-screenshots.sh [DIRECTORY]
set -euo pipefail
cd "$(dirname "$0")/.."
to=$(realpath "${1:-docs/img}")
most=153600 # bytes of one picture

scripts/sdks.sh up dashboard
ATOLL_DASHBOARD_SHOTS=$to go test -count=1 -run 'TestDashboard$' ./internal/app
for file in "$to"/dashboard-*.png; do
	(($(stat -c %s "$file") <= most)) || { echo "dashboard-screenshots.sh: $file is larger than $most bytes" >&2; exit 1; }
	echo "$file"
done
