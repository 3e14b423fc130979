#!/usr/bin/env bash
# Builds the image of browser sandboxes, under both names that it is known by. Settings
# come from the environment: BASE_IMAGE, TARGET_IMAGE, PACKAGES, FINAL_USER; more
# arguments (--backend docker) are passed on. `atoll images build --help` explains them.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
[[ -x $root/bin/atoll ]] || make -C "$root" build
"$root/bin/atoll" images build browser "$@"
"$root/bin/atoll" images build browser --target-image openclaw-sandbox-browser:latest "$@"
echo "Browser sandbox image built: openclaw-sandbox-browser:latest"
