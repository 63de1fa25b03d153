#!/bin/sh
# Compiles programs as they are shipped: scripts/bundle.sh DIRECTORY ARGUMENTS, where esbuild gets the arguments. The
# output of the compiler is not edited. Native packages stay outside: a program finds them from its folder.
set -eu
cd "$(dirname "$0")/.."
directory=$1
shift
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

# Bundled CommonJS modules expect what ES modules do not have.
banner="import { createRequire as requireFrom } from 'node:module'
const require = requireFrom(import.meta.url), __dirname = import.meta.dirname, __filename = import.meta.filename"

# Names are kept, because stack traces show them.
node_modules/.bin/esbuild --outdir="$new" --bundle --platform=node --target=node24 --format=esm \
  --conditions=source --minify-whitespace --line-limit=120 --banner:js="$banner" --log-level=warning \
  --external:@node-rs/argon2 --external:pg-native '--external:*/tracing-sdk.js' "$@"

# V8 stores a text with two bytes for each character if one of them needs two: 5 MiB of each process. esbuild escapes
# such characters in strings, and writes those of regular expressions and tagged templates as they are.
found=$(cd "$new" && LC_ALL=C grep -anor '.\{0,40\}[^[:print:][:cntrl:]]\{1,9\}' . || :)
if [ -n "$found" ]; then
  printf 'characters beyond ASCII are left in regular expressions or tagged templates: write \\u escapes\n%s\n' "$found" >&2
  exit 1
fi
mkdir -p "$directory"
cp -R "$new/." "$directory"
