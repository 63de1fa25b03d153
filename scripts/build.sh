#!/bin/sh
# Bundles every process into <its folder>/dist/main.js. Native packages stay outside: each is found from there.
# The argument is the revision that the processes report.
set -eu
cd "$(dirname "$0")/.."
version=$(node -p 'require("./package.json").version')

entries=
for folder in gateway launcher services/*; do
  entries="$entries $folder/dist/main=$folder/src/main.ts"
done
entries="$entries launcher/dist/all-parts=launcher/src/all-parts.ts"
# Of each process, and loaded only if it records traces.
for folder in gateway launcher services/*; do
  entries="$entries $folder/dist/tracing-sdk=packages/platform/src/tracing/tracing-sdk.ts"
done
for command in restore audit status backup admin-password keys; do
  entries="$entries launcher/dist/$command=launcher/src/commands/$command.ts"
done
entries="$entries packages/platform/dist/migrate=packages/platform/src/migrate.ts"
entries="$entries services/identity/dist/admin-password=services/identity/src/admin-password.ts"
entries="$entries services/identity/dist/identity-init=services/identity/src/identity-init.ts"
entries="$entries services/pki/dist/pki-init=services/pki/src/pki-init.ts"
entries="$entries services/pki/dist/pki-keys=services/pki/src/pki-keys.ts"

# Bundled CommonJS modules expect what ES modules do not have.
banner="import { createRequire as requireFrom } from 'node:module'
const require = requireFrom(import.meta.url), __dirname = import.meta.dirname, __filename = import.meta.filename"

# shellcheck disable=SC2086
node_modules/.bin/esbuild $entries --outdir=. --bundle --platform=node --target=node20 --format=esm \
  --conditions=source --external:@node-rs/argon2 --external:pg-native --external:*/tracing-sdk.js \
  --define:OVERLAY_BUILD="{\"version\":\"$version\",\"revision\":\"${1:-unknown}\"}" \
  --banner:js="$banner" --log-level=warning

# esbuild escapes all characters beyond ASCII except in comments. A single one doubles the memory that the text of a
# program takes in its process: 3 MiB.
for entry in $entries; do
  LC_ALL=C tr -d '\200-\377' <"${entry%%=*}.js" >"${entry%%=*}.ascii"
  mv "${entry%%=*}.ascii" "${entry%%=*}.js"
done
