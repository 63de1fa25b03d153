import { expect, test } from 'vitest'
import { identityEffects } from './identity.js'

const { concerns } = identityEffects({ wake: () => undefined })
const change = (kind: string, row: object | null) => ({
  kind,
  id: 'x',
  json: Buffer.from(row ? JSON.stringify(row) : ''),
  atMs: 0,
  number: 1,
})

test.each([
  ['an identity that is gone', 'identities', null, true],
  ['an API session that is gone', 'api-sessions', null, true],
  ['an identity that has changed', 'identities', { roleAttributes: [] }, true],
  ['an identity that is new', 'identities', { isNew: true }, false],
  ['an identity whose client reports itself', 'identities', { isReport: true }, false],
  ['an API session that lives', 'api-sessions', { isMfaComplete: true }, false],
])('%s may end sessions, or not', async (_what, kind, row, expected) => {
  expect(concerns?.(change(kind, row))).toBe(expected)
})
