import { expect, test } from 'vitest'
import { authQueriesOf } from './auth-queries.js'

const none = { requireTotp: false, requireExtJwtSigner: null, externalAuthUrl: null }

test.each([
  ['nothing is asked of a session without second factor', false, false, none, []],
  ['a required second factor is asked for until it is complete', true, false, none, ['MFA']],
  ['a complete second factor is not asked for again', true, true, none, []],
  ['a policy asks sessions that began without', false, false, { ...none, requireTotp: true }, ['MFA']],
  ['a policy accepts a complete factor', false, true, { ...none, requireTotp: true }, []],
  [
    'a second signer is asked for while no token of it counts',
    false,
    true,
    { ...none, requireExtJwtSigner: 's' },
    ['EXT-JWT'],
  ],
] as const)('%s', (_rule, isMfaRequired, isMfaComplete, demands, expected) => {
  const queries = authQueriesOf({ isMfaRequired, isMfaComplete, secondSigner: 'other' }, demands) as {
    typeId: string
  }[]
  expect(queries.map(({ typeId }) => typeId)).toEqual(expected)
})

test.each([
  ['the address of its signer', 'https://issuer.example/auth'],
  ['an empty address if the signer has none', null],
])('a query for a token has %s', (_what, externalAuthUrl) => {
  const demands = { ...none, requireExtJwtSigner: 's', externalAuthUrl }
  const factors = { isMfaRequired: false, isMfaComplete: false }
  expect(authQueriesOf({ ...factors, secondSigner: 's' }, demands)).toEqual([])
  expect(authQueriesOf({ ...factors, secondSigner: null }, demands)).toEqual([
    { typeId: 'EXT-JWT', provider: 'url', httpUrl: externalAuthUrl ?? '' },
  ])
})
