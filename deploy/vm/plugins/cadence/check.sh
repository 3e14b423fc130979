#!/bin/sh
# Succeeds if the directory of cadence is there.
[ -d /var/lib/cadence ]
