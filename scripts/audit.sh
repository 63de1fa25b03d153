#!/bin/sh
# Prints who changed what. Only the answer goes to standard output.
set -eu
cd "$(dirname "$0")/.."
. scripts/prepare.sh

prepare_install >&2
prepare_build >&2
exec node launcher/dist/audit.js "$@"
