#!/usr/bin/env bash
# Builds the image for development, on top of the default one. Settings come
# from the environment: BASE_IMAGE, TARGET_IMAGE, PACKAGES, INSTALL_PNPM,
# INSTALL_BUN, INSTALL_BREW, FINAL_USER; more arguments (--with gh) are passed
# on. `atoll images build --help` explains them.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
[[ -x $root/bin/atoll ]] || make -C "$root" build
exec "$root/bin/atoll" images build common "$@"
