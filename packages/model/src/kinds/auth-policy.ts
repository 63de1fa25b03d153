import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'

const flag = () => field.bool({ write: 'RRO' })

/** How the identities that it belongs to may log in, and what more they must show. */
export const authPolicy = defineEntity({
  kind: 'auth-policies',
  singular: 'authPolicy',
  owner: 'identity',
  followed: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    'primary.cert.allowed': flag(),
    'primary.cert.allowExpiredCerts': flag(),
    'primary.extJwt.allowed': flag(),
    // wire: this list alone reads back empty, not null
    'primary.extJwt.allowedSigners': {
      ...field.strings({ write: 'RRO', filter: false }),
      load: (ids) => ids as string[],
    },
    'primary.updb.allowed': flag(),
    'primary.updb.lockoutDurationMinutes': field.integer({ write: 'RRO', filter: false }),
    // differs: the original patches and filters some of these wrongly
    'primary.updb.maxAttempts': field.integer({ write: 'RRO' }),
    'primary.updb.minPasswordLength': field.integer({ write: 'RRO' }),
    'primary.updb.requireMixedCase': flag(),
    'primary.updb.requireNumberChar': flag(),
    'primary.updb.requireSpecialChar': flag(),
    // wire: left out of answers while unset
    'secondary.requireExtJwtSigner': field.string({ nullable: true, hidden: true }),
    'secondary.requireTotp': flag(),
  },
  links: {},
})
