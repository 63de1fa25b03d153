import type { ChangeEvent } from '@overlay/store/audit'
import { expect, test } from 'vitest'
import { auditText } from './audit-text.js'

const event: ChangeEvent = {
  namespace: 'entityChange',
  eventId: 'identity.7',
  eventType: 'updated',
  timestamp: '2026-01-12T09:30:00.123Z',
  metadata: {
    author: { type: 'identity', id: 'a1', name: 'root' },
    source: { type: 'rest', remoteAddr: '192.0.2.7' },
    requestId: 'req1',
  },
  entityType: 'identities',
  kind: 'identities',
  entityId: 'i1',
  entityName: 'alice',
  cursor: '1768210200123.identity.7',
  initialState: { name: 'alice', roleAttributes: [], updatedAt: '1' },
  finalState: { name: 'alice', roleAttributes: ['staff'], updatedAt: '2' },
}

test('a change has author, address, entity and the fields that differ', () => {
  expect(auditText(event)).toBe(
    '2026-01-12T09:30:00.123Z  "root" (identity a1)  from 192.0.2.7  updated  identities  "alice"  (i1)  fields roleAttributes  request req1',
  )
})

test('an entity without a name has its id', () => {
  const { entityName: _, finalState: _after, ...unnamed } = event
  expect(auditText({ ...unnamed, eventType: 'deleted' })).toContain('  deleted  identities  i1  request')
})

test.each([
  [{ author: { type: 'controller' } }, 'the system'],
  [
    { author: { type: 'unattributed' }, source: { type: 'rest', remoteAddr: '192.0.2.7' } },
    'a client without a session  from 192.0.2.7',
  ],
  [{ author: { type: 'operator', name: 'root' } }, 'operator "root" on this machine'],
  [{ author: { type: 'router', id: 'r1' }, source: { type: 'ctrl.channel' } }, 'router r1'],
  [{ author: { type: 'router', id: 'r1', name: 'edge-1' } }, '"edge-1" (router r1)'],
] as const)('the author of %j is %s', (metadata, text) => {
  expect(auditText({ ...event, metadata })).toContain(`Z  ${text}  updated`)
})

test('names cannot control the terminal', () => {
  expect(auditText({ ...event, entityName: 'a\u001b[2J\u202eb' })).toContain('"a\uFFFD[2J\uFFFDb"')
})
