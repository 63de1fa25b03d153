#!/bin/sh
# Writes the files of the image into a new directory: scripts/image.sh DIRECTORY [REVISION]. Programs and migrations stay
# where they are in a checkout. The launcher, its servers and all that only developers need is left out.
set -eu
cd "$(dirname "$0")/.."
. scripts/prepare.sh

image=$1
prepare_install
prepare_build "${2:-}"
mkdir "$image"

for folder in gateway services/*; do
  mkdir -p "$image/$folder"
  cp -R "$folder/dist" "$image/$folder"
  [ ! -e "$folder/migrations" ] || cp -R "$folder/migrations" "$image/$folder"
done
mkdir -p "$image/packages/store"
cp -R packages/store/dist packages/store/migrations "$image/packages/store"

# Native packages: the one that selects a platform, beside those of the platforms that are installed.
native=$(dirname "$(cd services/identity/node_modules/@node-rs/argon2 && pwd -P)")
mkdir "$image/node_modules"
cp -RL "$native" "$image/node_modules/@node-rs"

node -e 'const { name, version, license, type } = require("./package.json")
  console.log(JSON.stringify({ name, version, private: true, license, type }, null, 2))' >"$image/package.json"
cp LICENSE dist/THIRD-PARTY-NOTICES dist/sbom.cdx.json "$image"
chmod -R u=rwX,go=rX "$image"
