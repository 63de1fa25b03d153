#!/bin/sh
# Installs and builds what has changed since the last time, then starts the product.
set -eu
cd "$(dirname "$0")/.."
. scripts/prepare.sh

prepare_install
prepare_build
exec node launcher/dist/main.js "$@"
