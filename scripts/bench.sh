#!/bin/sh
# Measures the product, or any controller of the same API.
set -eu
cd "$(dirname "$0")/.."
. scripts/prepare.sh

prepare_install with-tools
prepare_build
exec node --conditions=source --import tsx bench/src/main.ts "$@"
