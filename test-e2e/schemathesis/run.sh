#!/usr/bin/env bash
# Asks a running product whatever its own documents allow, and much that they do not: each answer must be one of those
# that the documents describe, and none may say that the server failed. The last line counts operations.
# Usage: run.sh <address> <home of the product> [seconds, by default 120]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
address=$1 home=$2 seconds=${3:-120}
seed=20260112
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

give_up() {
  echo "schemathesis: $*"
  printf '%d passed, %d failed\n' "$passed" $((failed + 1))
  exit 1
}

# Kept from run to run while the pinned versions stay the same.
cache=${OVERLAY_TEST_CACHE:-$HOME/.cache/overlay-tests}/schemathesis-$(cksum <"$here/requirements.txt" | tr ' ' -)
if [ ! -e "$cache/complete" ]; then
  rm -rf "$cache"
  mkdir -p "${cache%/*}"
  python3 -m venv "$cache" >"$work/venv.log" 2>&1 &&
    "$cache/bin/pip" install --quiet --no-deps --disable-pip-version-check -r "$here/requirements.txt" \
      >>"$work/venv.log" 2>&1 || { cat "$work/venv.log"; give_up 'not installed'; }
  touch "$cache/complete"
fi

cd "$here/../.." || exit 1
export FACTS=$work/facts.json SCHEMATHESIS_HOOKS=hooks PYTHONPATH=$here
(umask 077 && node --conditions=source --import tsx "$here/facts.ts" "$address" "$home" >"$FACTS") ||
  give_up 'the product could not be filled'
token=$(node -p 'JSON.parse(fs.readFileSync(process.argv[1])).token' "$FACTS")

# Operations without and with complaints, and requests.
count='const r = JSON.parse(fs.readFileSync(process.argv[1]));
  const bad = new Set([...r.failures, ...r.errors].flatMap(({ operations, operation }) => operations ?? [operation]));
  `${r.operations.tested - bad.size} ${bad.size} ${r.test_cases.generated}`'

# Left out is what ends the session that asks, the logout. Its admin, and what that logs in by, are spared by the hooks.
ask() {
  local api=$1 seconds=$2 base=https://$address/edge/$1/v1 status numbers
  (cd "$work" && timeout $((seconds + 120)) "$cache/bin/st" run "$base/specs/edge-$api/spec?version=3" \
    --url "$base" --tls-verify "$home/ca.pem" --header "zt-session: $token" \
    --exclude-operation-id deleteCurrentApiSession \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
    --phases coverage,fuzzing --seed $seed --max-time "$seconds" --continue-on-failure \
    --generation-database none --warnings off --no-color --report json --report-json-path "$api.json") >"$work/$api.log" 2>&1
  status=$?
  sed -n '/^=* \(FAILURES\|ERRORS\) /,/^=* \(WARNINGS\|SUMMARY\) /p' "$work/$api.log" | head -400
  if ! numbers=$(node -p "$count" "$work/$api.json"); then
    tail -50 "$work/$api.log"
    give_up "the $api API: no report, the run ended with $status"
  fi
  read -r good bad cases <<<"$numbers"
  echo "schemathesis: $api API, $((good + bad)) operations, $cases requests, seed $seed"
  if [ "$status" != 0 ] && [ "$bad" = 0 ]; then
    tail -50 "$work/$api.log"
    bad=1
  fi
  passed=$((passed + good)) failed=$((failed + bad))
}

ask management $((seconds * 2 / 3))
ask client $((seconds / 3))
# Else most answers were refusals, which prove nothing.
"$cache/bin/python" "$here/alive.py" "https://$address" "$home/ca.pem" "$token" || give_up 'the session did not last'
printf '%d passed, %d failed\n' $passed $failed
[ $failed = 0 ]
