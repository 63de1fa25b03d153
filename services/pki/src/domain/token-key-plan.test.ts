import { assert, constant, date, integer, option, property, record, uniqueArray } from 'fast-check'
import { expect, test } from 'vitest'
import { KEYS_CACHED_MS, planTokenKeys, type TokenKeyRules, type TokenKeyState } from './token-key-plan.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const rules: TokenKeyRules = { periodMs: 30 * DAY_MS, tokenMs: DAY_MS, since: undefined }
const start = Date.parse('2026-01-01T00:00:00Z')
const at = (ms: number): Date => new Date(start + ms)

/** What the store does with a plan. */
function take(keys: readonly TokenKeyState[], when: TokenKeyRules, now: Date): readonly TokenKeyState[] {
  const { remove, retire, activate, add } = planTokenKeys(keys, when, now)
  const stepped = keys
    .filter(({ id }) => !remove.includes(id))
    .map((key): TokenKeyState => {
      if (retire.includes(key.id)) return { ...key, state: 'retired', retiredAt: now }
      return activate.includes(key.id) ? { ...key, state: 'active', activeAt: now } : key
    })
  const added = add.map((state): TokenKeyState => {
    const activeAt = state === 'active' ? now : null
    return { id: `${state} of ${now.toISOString()}`, state, createdAt: now, activeAt, retiredAt: null }
  })
  return [...stepped, ...added]
}

const idsOf = (keys: readonly TokenKeyState[]): ReadonlySet<string> => new Set(keys.map(({ id }) => id))
const activeIn = (keys: readonly TokenKeyState[]) => keys.filter(({ state }) => state === 'active')

test('through all rotations every token verifies with keys that were published a cache period ago', () => {
  const lengths = record({
    periodMs: integer({ min: 2, max: 96 }).map((hours) => hours * HOUR_MS),
    tokenMs: integer({ min: 1, max: 96 }).map((hours) => hours * HOUR_MS),
    since: constant(undefined),
    stepMs: integer({ min: 15 * 60_000, max: HOUR_MS }),
  })
  assert(
    property(lengths, ({ stepMs, ...rules }) => {
      let keys: readonly TokenKeyState[] = []
      const published: { readonly time: number; readonly ids: ReadonlySet<string> }[] = []
      const ends = new Map<string, number>() // of the last token of each key
      for (let time = 0; time < 4 * rules.periodMs; time += stepMs) {
        keys = take(keys, rules, at(time))
        const ids = idsOf(keys)
        const [active, ...others] = activeIn(keys)
        published.push({ time, ids })
        ends.set(active?.id ?? '', time + rules.tokenMs)
        const kept = published.findLast((one) => one.time <= time - KEYS_CACHED_MS) ?? published[0]
        const lost = [...ends].filter(([id, end]) => end > time && !ids.has(id))
        if (others.length > 0 || !kept?.ids.has(active?.id ?? '') || lost.length > 0) return false
      }
      return ends.size >= 3
    }),
    { numRuns: 50 },
  )
})

test('rotations happen once a period, and retired keys go', () => {
  let keys: readonly TokenKeyState[] = []
  const seen = new Set<string>()
  for (let time = 0; time <= 95 * DAY_MS; time += HOUR_MS) {
    keys = take(keys, rules, at(time))
    for (const { id } of activeIn(keys)) seen.add(id)
  }
  expect(seen.size).toBe(4)
  expect(keys.map(({ state }) => state).sort()).toEqual(['active', 'next'])
})

test('a check that comes years late still publishes the next key before it signs', () => {
  const keys = take([], rules, at(0))
  const late = take(keys, rules, at(1000 * DAY_MS))
  expect(idsOf(keys)).toContain(activeIn(late)[0]?.id)
  const [stale] = activeIn(keys)
  const alone = take(stale ? [stale] : [], rules, at(1000 * DAY_MS))
  expect(activeIn(alone)).toEqual([stale])
})

test('whatever keys there are, one is active and one is next afterwards, and none is older than trusted', () => {
  const times = date({ min: at(0), max: at(90 * DAY_MS), noInvalidDate: true })
  const key = record({ createdAt: times, activeAt: times, retiredAt: times })
  const states = record({
    active: option(key),
    next: option(key),
    retired: uniqueArray(key, { maxLength: 5 }),
    since: option(times, { nil: undefined }),
    now: times,
  })
  assert(
    property(states, ({ active, next, retired, since, now }) => {
      const keys: TokenKeyState[] = []
      const given = retired.map((one) => ({ ...one, state: 'retired' as const }))
      for (const one of given) keys.push({ ...one, id: `r${keys.length}` })
      if (active) keys.push({ ...active, id: 'a', state: 'active', retiredAt: null })
      if (next) keys.push({ ...next, id: 'n', state: 'next', activeAt: null, retiredAt: null })
      const after = take(keys, { ...rules, since }, now)
      expect(activeIn(after)).toHaveLength(1)
      expect(after.filter(({ state }) => state === 'next')).toHaveLength(1)
      if (since && since <= now) for (const { createdAt } of after) expect(createdAt >= since).toBe(true)
      expect(planTokenKeys(after, { ...rules, since }, now)).toMatchObject({ remove: [], add: [] })
    }),
  )
})
