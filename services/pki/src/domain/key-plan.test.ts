import { expect, test } from 'vitest'
import { concernOf, dueStep, type KeyRules, neededUntil, renewalOf } from './key-plan.js'
import { keyOf, type PlannedCertificate, type PlannedKey } from './planned-key.js'

const DAY_MS = 86_400_000
const YEAR_MS = 365 * DAY_MS
const start = Date.parse('2026-01-01T00:00:00Z')
const at = (ms: number): Date => new Date(start + ms)
const rules: KeyRules = { hosts: ['a.example'], tokens: undefined }
const earlier = (a: Date, b: Date | undefined): Date => (b && b < a ? b : a)

/** What the store does with the steps that are due. Leaves of an authority live for a year. */
function settle(keys: readonly PlannedKey[], now: Date, when = rules): readonly PlannedKey[] {
  let taken = keys
  for (let steps = 0; steps < 30; steps++) {
    const due = dueStep(taken, when, now)
    if (!due) return taken
    taken = take(taken, due, now)
  }
  throw new Error('the steps do not end')
}

function take(
  keys: readonly PlannedKey[],
  due: NonNullable<ReturnType<typeof dueStep>>,
  now: Date,
): readonly PlannedKey[] {
  if (due.step === 'remove') return keys.filter(({ id }) => id !== due.id)
  if (due.step === 'renew')
    return keys.map((key) =>
      key.id === due.id ? { ...key, certificate: certify(keys, 'server', now) } : key,
    )
  if (due.step === 'activate') {
    const role = keys.find(({ id }) => id === due.id)?.role
    return keys.map((key): PlannedKey => {
      if (key.id === due.id) return { ...key, state: 'active', activeAt: now }
      const isFormer = key.role === role && key.state === 'active'
      return isFormer ? { ...key, state: 'retired', retiredAt: now } : key
    })
  }
  const { role, state } = due
  if (role === 'token' || role === 'session') throw new Error('no tokens here')
  const certificate = certify(keys, role, now, state)
  const id = `${role} of ${now.toISOString()}`
  const activeAt = state === 'active' ? now : null
  return [
    ...keys,
    { ...{ id, role, state, source: 'generated', createdAt: now, activeAt }, retiredAt: null, certificate },
  ]
}

function certify(
  keys: readonly PlannedKey[],
  role: 'root' | 'signing' | 'server',
  now: Date,
  state: 'next' | 'active' = 'active',
): PlannedCertificate {
  const root = (state === 'next' && keyOf(keys, 'root', 'next')) || keyOf(keys, 'root', 'active')
  const issuer = role === 'root' ? undefined : role === 'signing' ? root : keyOf(keys, 'signing', 'active')
  const end = new Date(now.getTime() + (role === 'server' ? 1 : 10) * YEAR_MS)
  return {
    notBefore: new Date(now.getTime() - 60_000),
    notAfter: earlier(end, issuer?.certificate?.notAfter),
    issuerId: issuer?.id,
    crossedBy: role === 'root' ? keyOf(keys, 'root', 'active')?.id : undefined,
    hosts: role === 'server' ? ['a.example'] : [],
    canSign: true,
  }
}

test('what is issued on any day verifies until it ends, with authorities that were published a day before', () => {
  let keys = settle([], at(0))
  let published = keys
  let leaves: readonly { readonly issuerId: string | undefined; readonly end: Date }[] = []
  const actives = new Set<string | undefined>()
  const wrong: unknown[] = []
  for (let ms = 0; ms < 24 * YEAR_MS; ms += DAY_MS) {
    const now = at(ms)
    keys = settle(keys, now)
    const isKnown = (id: string | undefined): boolean => keys.some((key) => key.id === id)
    const [signing, server] = [keyOf(keys, 'signing', 'active'), keyOf(keys, 'server', 'active')]
    const rootId = signing?.certificate?.issuerId
    for (const id of [signing?.id, rootId]) {
      actives.add(id)
      if (!published.some((key) => key.id === id)) wrong.push(['not published', now, id])
    }
    const end = new Date(ms + start + YEAR_MS)
    // authorities change long before they shorten leaves
    if (!signing?.certificate || signing.certificate.notAfter < end) wrong.push(['ends too soon', now])
    if (!server?.certificate || server.certificate.notAfter <= now) wrong.push(['server', now])
    if (ms % (30 * DAY_MS) === 0)
      leaves = [...leaves.filter((leaf) => leaf.end > now), { issuerId: signing?.id, end }]
    for (const { issuerId, end } of leaves) {
      const issuer = keys.find(({ id }) => id === issuerId)
      if (end > now && !isKnown(issuer?.certificate?.issuerId)) wrong.push(['stranded', now, issuerId])
    }
    for (const key of keys) if (concernOf(key, undefined, now)) wrong.push(['concern', now, key])
    published = keys
  }
  expect(wrong).toEqual([])
  expect(actives.size).toBe(8) // four of each role
  expect(keys.length).toBeLessThan(8)
})

test('a check that comes years late still publishes the next authorities for a day', () => {
  const keys = settle([], at(0))
  const late = settle(keys, at(9 * YEAR_MS))
  expect(keyOf(late, 'root', 'active')).toEqual(keyOf(keys, 'root', 'active'))
  expect(keyOf(late, 'signing', 'next')?.certificate?.issuerId).toBe(keyOf(late, 'root', 'next')?.id)
  expect(settle(late, at(9 * YEAR_MS + DAY_MS - 1))).toEqual(late)
  const changed = settle(late, at(9 * YEAR_MS + DAY_MS))
  const signing = keyOf(changed, 'signing', 'active')
  expect(signing?.certificate?.issuerId).toBe(keyOf(changed, 'root', 'active')?.id)
  expect(keyOf(changed, 'server', 'active')?.certificate?.issuerId).toBe(signing?.id)
  expect(
    changed
      .filter(({ state }) => state === 'retired')
      .map(({ role }) => role)
      .sort(),
  ).toEqual(['root', 'signing'])
})

test('a retired authority goes when its certificates have expired, its root when clients that know only that have none', () => {
  const retired = settle(settle(settle([], at(0)), at(9 * YEAR_MS)), at(9 * YEAR_MS + DAY_MS))
  const statesAt = (ms: number) =>
    settle(retired, at(ms))
      .filter(({ state }) => state === 'retired')
      .map(({ role }) => role)
  expect(statesAt(10 * YEAR_MS - DAY_MS).sort()).toEqual(['root', 'signing'])
  const root = retired.find(({ role, state }) => role === 'root' && state === 'retired')
  expect(root && neededUntil(root, retired, at(9 * YEAR_MS))).toEqual(root?.certificate?.notAfter)
  expect(statesAt(10 * YEAR_MS + 5 * DAY_MS)).toEqual([])
})

test('provided keys stay, and concern the operator before they expire', () => {
  const keys = settle([], at(0)).map((key): PlannedKey => ({ ...key, source: 'provided' }))
  const late = at(10 * YEAR_MS - DAY_MS)
  expect(settle(keys, late)).toEqual(keys)
  expect(keys.map((key) => [renewalOf(key, undefined), concernOf(key, undefined, late)])).toEqual(
    Array(3).fill([undefined, 'expires within 30 days']),
  )
})

test('the certificate of the server is renewed for a missing name', () => {
  const keys = settle([], at(0))
  const other: KeyRules = { ...rules, hosts: ['b.example'] }
  expect(dueStep(keys, rules, at(DAY_MS))).toBeUndefined()
  expect(dueStep(keys, other, at(DAY_MS))).toEqual({ step: 'renew', id: keyOf(keys, 'server', 'active')?.id })
})

test('a root whose private key is elsewhere is not replaced, and issues nothing', () => {
  const keys = settle([], at(0)).map((key): PlannedKey => {
    const { certificate } = key
    return key.role === 'root' && certificate
      ? { ...key, certificate: { ...certificate, canSign: false } }
      : key
  })
  const roles = settle(keys, at(9 * YEAR_MS)).map(({ role }) => role)
  expect(roles).toEqual(['root', 'signing', 'server'])
})
