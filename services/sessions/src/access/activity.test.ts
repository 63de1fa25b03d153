import { openLog } from '@overlay/process'
import type { Database } from '@overlay/store/postgres'
import { expect, test } from 'vitest'
import { openActivity } from './activity.js'

test('uses are marked and connections reported also while the database of this service fails', async () => {
  const seen = new Map<string, readonly string[]>()
  const db = { transaction: () => Promise.reject(new Error('full')) } as unknown as Database
  const session = { id: 's1', token: 't1', tokenId: undefined, identityId: 'alice', fingerprints: '' }
  await using activity = openActivity({
    db,
    identity: {
      async markActivity({ apiSessionIds }) {
        seen.set('marked', apiSessionIds)
        return { unknownIds: [] }
      },
      async reportConnections({ identityIds }) {
        seen.set('reported', identityIds)
        return {}
      },
    },
    apiSessions: {
      byToken: (token) => (token === 't1' ? session : undefined),
      catchUp: async () => undefined,
    },
    mayHave: () => true,
    log: openLog('sessions', { level: 'silent', format: 'json' }),
    gatherMs: 1,
  })
  expect(await activity.note(['t1', 't2'], 'r1')).toEqual(['t2'])
  while (seen.size < 2) await new Promise(setImmediate)
  expect([...seen].sort()).toEqual([
    ['marked', ['s1']],
    ['reported', ['alice']],
  ])
})
