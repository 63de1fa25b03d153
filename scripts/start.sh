#!/bin/sh
# Installs and builds what has changed since the last time, then starts the product.
set -eu
cd "$(dirname "$0")/.."
. scripts/prepare.sh

prepare_install
prepare_build
[ "$(node -p 'process.versions.node.split(".")[0]')" -gt 20 ] ||
  echo "warning: Node $(node --version) has reached its end of life: please use Node 22 or 24" >&2
exec node launcher/dist/main.js "$@"
