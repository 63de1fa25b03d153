import { assert, constant, date, integer, option, property, record, uniqueArray } from 'fast-check'
import { expect, test } from 'vitest'
import { KEYS_CACHED_MS, SESSION_TOKEN_MS, TOKEN_KEY_EXTRA_MS } from '../limits.js'
import { type PlannedKey, type TokenRole, tokenRoles } from './planned-key.js'
import { dueTokenStep, type TokenKeyRules } from './token-key-plan.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const rules: TokenKeyRules = { periodMs: 30 * DAY_MS, tokenMs: DAY_MS, since: undefined }
const start = Date.parse('2026-01-01T00:00:00Z')
const at = (ms: number): Date => new Date(start + ms)

/** What the store does with the steps that are due. */
function take(keys: readonly PlannedKey[], when: TokenKeyRules, now: Date): readonly PlannedKey[] {
  let taken = keys
  for (let steps = 0; steps < 20; steps++) {
    const due = dueTokenStep(taken, when, now)
    if (!due) return taken
    taken = taken.flatMap((key): PlannedKey[] => {
      if (due.step === 'remove' && due.id === key.id) return []
      if (due.step !== 'activate') return [key]
      if (key.state === 'active' && key.role === roleOf(taken, due.id))
        return [{ ...key, state: 'retired', retiredAt: now }]
      return [due.id === key.id ? { ...key, state: 'active', activeAt: now } : key]
    })
    if (due.step !== 'add') continue
    const { role, state } = due
    const activeAt = state === 'active' ? now : null
    const id = `${role} ${state} of ${now.toISOString()}`
    const source = 'generated'
    taken = [...taken, { role, source, id, state, createdAt: now, activeAt, retiredAt: null }]
  }
  throw new Error('the steps do not end')
}

const roleOf = (keys: readonly PlannedKey[], id: string) => keys.find((key) => key.id === id)?.role
const idsOf = (keys: readonly PlannedKey[]): ReadonlySet<string> => new Set(keys.map(({ id }) => id))
const ofRole = (keys: readonly PlannedKey[], which: TokenRole) => keys.filter(({ role }) => role === which)
const activeIn = (keys: readonly PlannedKey[], role: TokenRole = 'token') =>
  ofRole(keys, role).filter(({ state }) => state === 'active')

test.each(tokenRoles)(
  'through all rotations every token of role %s verifies with keys that were published a cache period ago',
  (role) => {
    const lengths = record({
      periodMs: integer({ min: 2, max: 96 }).map((hours) => hours * HOUR_MS),
      tokenMs: integer({ min: 1, max: 96 }).map((hours) => hours * HOUR_MS),
      since: constant(undefined),
      stepMs: integer({ min: 15 * 60_000, max: HOUR_MS }),
    })
    void assert(
      property(lengths, ({ stepMs, ...rules }) => {
        let keys: readonly PlannedKey[] = []
        const published: { readonly time: number; readonly ids: ReadonlySet<string> }[] = []
        const ends = new Map<string, number>() // of the last token of each key
        for (let time = 0; time < 4 * rules.periodMs; time += stepMs) {
          keys = take(keys, rules, at(time))
          const ids = idsOf(keys)
          const [active, ...others] = activeIn(keys, role)
          published.push({ time, ids })
          ends.set(active?.id ?? '', time + (role === 'session' ? SESSION_TOKEN_MS : rules.tokenMs))
          const kept = published.findLast((one) => one.time <= time - KEYS_CACHED_MS) ?? published[0]
          const lost = [...ends].filter(([id, end]) => end > time && !ids.has(id))
          if (others.length > 0 || !kept?.ids.has(active?.id ?? '') || lost.length > 0) return false
        }
        return ends.size >= 3
      }),
      { numRuns: 50 },
    )
  },
)

test('rotations happen once a period, and retired keys go', () => {
  let keys: readonly PlannedKey[] = []
  const seen = new Set<string>()
  for (let time = 0; time <= 95 * DAY_MS; time += HOUR_MS) {
    keys = take(keys, rules, at(time))
    for (const { id } of activeIn(keys)) seen.add(id)
  }
  expect(seen.size).toBe(4)
  expect(
    ofRole(keys, 'token')
      .map(({ state }) => state)
      .sort(),
  ).toEqual(['active', 'next'])
})

test('a check that comes years late still publishes the next key before it signs', () => {
  const keys = take([], rules, at(0))
  const late = take(keys, rules, at(1000 * DAY_MS))
  expect(idsOf(keys)).toContain(activeIn(late)[0]?.id)
  const [stale] = activeIn(keys)
  const alone = take(stale ? [stale] : [], rules, at(1000 * DAY_MS))
  expect(activeIn(alone)).toEqual([stale])
})

test('a key of tokens of sessions stays until its last token has expired, and no longer', () => {
  const first = take([], rules, at(0))
  const second = take(first, rules, at(30 * DAY_MS))
  const [old] = activeIn(first, 'session')
  const end = 30 * DAY_MS + SESSION_TOKEN_MS + TOKEN_KEY_EXTRA_MS
  expect(activeIn(second, 'session')).not.toEqual([old])
  expect(idsOf(take(second, rules, at(end)))).toContain(old?.id)
  expect(idsOf(take(second, rules, at(end + 1)))).not.toContain(old?.id)
})

test.each(tokenRoles)(
  'whatever keys of role %s there are, one is active and one is next afterwards, and none is older than trusted',
  (role) => {
    const times = date({ min: at(0), max: at(90 * DAY_MS), noInvalidDate: true })
    const key = { role, source: 'generated' } as const
    const ages = record({ createdAt: times, activeAt: times, retiredAt: times })
    const states = record({
      active: option(ages),
      next: option(ages),
      retired: uniqueArray(ages, { maxLength: 5 }),
      since: option(times, { nil: undefined }),
      now: times,
    })
    void assert(
      property(states, ({ active, next, retired, since, now }) => {
        const keys: PlannedKey[] = []
        const given = retired.map((one) => ({ ...key, ...one, state: 'retired' as const }))
        for (const one of given) keys.push({ ...one, id: `r${keys.length}` })
        if (active) keys.push({ ...key, ...active, id: 'a', state: 'active', retiredAt: null })
        if (next) keys.push({ ...key, ...next, id: 'n', state: 'next', activeAt: null, retiredAt: null })
        const after = ofRole(take(keys, { ...rules, since }, now), role)
        expect(activeIn(after, role)).toHaveLength(1)
        expect(after.filter(({ state }) => state === 'next')).toHaveLength(1)
        if (since && since <= now) for (const { createdAt } of after) expect(createdAt >= since).toBe(true)
      }),
    )
  },
)

test('a key that the operator has provided is not replaced automatically', () => {
  const [active] = activeIn(take([], rules, at(0)))
  const provided = active ? [{ ...active, source: 'provided' as const }] : []
  expect(ofRole(take(provided, rules, at(1000 * DAY_MS)), 'token')).toEqual(provided)
})
