import { expect, test } from 'vitest'
import type { AuditRow } from './audit-rows.js'
import { auditText } from './audit-text.js'

const row: AuditRow = {
  schema: 'identity',
  at: '2026-01-12T09:30:00.123Z',
  kind: 'identities',
  entity_id: 'i1',
  before: { name: 'alice', roleAttributes: [], updatedAt: '1' },
  after: { name: 'alice', roleAttributes: ['staff'], updatedAt: '2' },
  request_id: 'req1',
  identity_id: 'a1',
  identity_name: 'root',
  source_address: '192.0.2.7',
  author_kind: 'identity',
}

test('a change has author, address, entity and the fields that differ', () => {
  expect(auditText(row)).toBe(
    '2026-01-12T09:30:00.123Z  "root" (identity a1)  from 192.0.2.7  changed  identities  "alice"  (i1)  fields roleAttributes  request req1',
  )
})

test('a deleted entity has the name that it had', () => {
  expect(auditText({ ...row, after: null })).toContain('  deleted  identities  "alice"  (i1)  request')
})

test.each([
  [{ identity_id: '', identity_name: '', source_address: '' }, 'the system'],
  [
    { identity_id: '', identity_name: '', source_address: '192.0.2.7' },
    'a client without a session  from 192.0.2.7',
  ],
  [{ identity_id: '', identity_name: '', source_address: null }, 'the system, or a client without a session'],
  [{ identity_id: '', source_address: '' }, 'operator "root" on this machine'],
  [{ author_kind: null }, '"root" (deleted identity or router a1)'],
  [{ author_kind: 'router', identity_name: '', source_address: '' }, 'router a1'],
] as const)('the author of %j is %s', (author, text) => {
  expect(auditText({ ...row, ...author })).toContain(`Z  ${text}  `)
})

test('names cannot control the terminal', () => {
  expect(auditText({ ...row, after: { name: 'a\u001b[2J\u202eb' } })).toContain('"a\uFFFD[2J\uFFFDb"')
})
