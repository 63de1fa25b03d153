#!/bin/sh
# Reads a database snapshot into an empty database, before the product is started on it.
set -eu
cd "$(dirname "$0")/.."
. scripts/prepare.sh

prepare_install
prepare_build
exec node launcher/dist/restore.js "$@"
