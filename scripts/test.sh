#!/bin/sh
# Everything that can be checked without a browser or another machine.
set -eu
cd "$(dirname "$0")/.."
. scripts/prepare.sh

prepare_install with-tools
prepare_build
case " $* " in
  *' --watch '*) exec node_modules/.bin/vitest "$@" ;; # runs the tests again that a change concerns
esac
echo '== types and style'
sh scripts/check.sh
echo '== tests'
status=0
node_modules/.bin/vitest run "$@" || status=$?
# of this shell's children and of theirs, as far as their parents have waited for them
awk -v hertz="$(getconf CLK_TCK)" '{ printf "processor time with servers: %d s\n", ($16 + $17) / hertz }' \
  /proc/$$/stat 2>/dev/null || : # not on macOS
exit $status
