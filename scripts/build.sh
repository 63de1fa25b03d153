#!/bin/sh
# Bundles every process into <its folder>/dist/main.js.
# The argument is the revision that the processes report.
set -eu
cd "$(dirname "$0")/.."
version=$(node -p 'require("./package.json").version')

entries=
for folder in gateway launcher services/*; do
  entries="$entries $folder/dist/main=$folder/src/main.ts"
done
entries="$entries launcher/dist/all-components=launcher/src/all-components.ts"
# Of each process, and loaded only if it records traces.
for folder in gateway launcher services/*; do
  entries="$entries $folder/dist/tracing-sdk=packages/process/src/tracing/tracing-sdk.ts"
done
for command in restore audit status backup admin-password keys; do
  entries="$entries launcher/dist/$command=launcher/src/commands/$command.ts"
done
entries="$entries packages/store/dist/migrate=packages/store/src/migrate.ts"
entries="$entries services/identity/dist/admin-password=services/identity/src/admin-password.ts"
entries="$entries services/identity/dist/identity-init=services/identity/src/identity-init.ts"
entries="$entries services/pki/dist/pki-init=services/pki/src/pki-init.ts"
entries="$entries services/pki/dist/pki-keys=services/pki/src/pki-keys.ts"

mkdir -p dist
# shellcheck disable=SC2086
sh scripts/bundle.sh . $entries --metafile=dist/metafile.json \
  --define:OVERLAY_BUILD="{\"version\":\"$version\",\"revision\":\"${1:-unknown}\"}"
node scripts/write-notices.ts dist/metafile.json dist
