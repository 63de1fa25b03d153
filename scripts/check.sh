#!/bin/sh
# Types, style and imports: what can be checked without running the product.
set -eu
cd "$(dirname "$0")/.."
. scripts/prepare.sh

prepare_install with-tools
node_modules/.bin/tsc --noEmit
node_modules/.bin/biome check .
node scripts/check-imports.ts
