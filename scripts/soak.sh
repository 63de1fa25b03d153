#!/bin/sh
# Random operations against a model while faults happen; see --help.
set -eu
cd "$(dirname "$0")/.."
. scripts/prepare.sh

prepare_install with-tools
prepare_build
exec node --conditions=source --import tsx test-e2e/soak/main.ts "$@"
