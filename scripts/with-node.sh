#!/bin/sh
# Runs a command with the Node of the product: scripts/with-node.sh node --version.
set -eu
cd "$(dirname "$0")/.."
. scripts/prepare.sh

exec "$@"
