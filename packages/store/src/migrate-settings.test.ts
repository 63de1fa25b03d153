import { expect, test } from 'vitest'
import { schemasOf } from './migrate-settings.js'

const owner = 'postgres://overlay:a@db/network?sslmode=require'
const urls = {
  identity: 'postgres://one:a@db/network',
  pki: 'postgres://two:b%40@pooler:6432/network',
  policy: 'postgres://three%20:c@db/network',
  sessions: 'postgres://four:d@db/network?application_name=x',
}

test('roles and passwords are those with which the services connect', () => {
  expect(schemasOf(owner, urls)).toEqual([
    { schema: 'identity', role: 'one', password: 'a' },
    { schema: 'pki', role: 'two', password: 'b@' },
    { schema: 'policy', role: 'three ', password: 'c' },
    { schema: 'sessions', role: 'four', password: 'd' },
  ])
})

test.each([
  [
    'has no password',
    'postgres://two@db/network',
    /OVERLAY_PKI_DATABASE_URL must have a user and a password/,
  ],
  ['has no user', 'postgres://db/network', /OVERLAY_PKI_DATABASE_URL must have a user and a password/],
  ['is the owner’s', owner, /OVERLAY_PKI_DATABASE_URL must not have the owner/],
  ['names another database', 'postgres://two:b@db/other', /OVERLAY_PKI_DATABASE_URL must name the database/],
  ['has the role of another service', urls.policy, /a database user of its own/],
])('a URL that %s is refused', (_what, pki, reason) => {
  expect(() => schemasOf(owner, { ...urls, pki })).toThrow(reason)
})
