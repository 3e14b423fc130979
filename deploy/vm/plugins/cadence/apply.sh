#!/bin/sh
# Makes the directory of cadence.
set -eu
install -d -m 0755 /var/lib/cadence
