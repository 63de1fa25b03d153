#!/bin/sh
# Everything that can be checked without a browser or another machine.
set -eu
cd "$(dirname "$0")/.."
. scripts/prepare.sh

prepare_install with-tools
prepare_build
npm run --silent check
exec node_modules/.bin/vitest run "$@"
