import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import { flag, object, text } from '../kernel/schema.js'

const rule = () => field.bool({ write: 'RRO' })
/** What its column holds. */
const count = { write: 'RRO', min: -(2 ** 31), max: 2 ** 31 - 1 } as const

/** How its identities may log in, and which second factors they need. */
export const authPolicy = defineEntity({
  kind: 'auth-policies',
  singular: 'authPolicy',
  owner: 'identity',
  followed: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    'primary.cert.allowed': rule(),
    'primary.cert.allowExpiredCerts': rule(),
    'primary.extJwt.allowed': rule(),
    // wire: answers show this list empty, not null as other lists
    'primary.extJwt.allowedSigners': {
      ...field.strings({ write: 'RRO', filter: false }),
      load: (ids) => ids as string[],
    },
    'primary.updb.allowed': rule(),
    'primary.updb.lockoutDurationMinutes': field.integer({ ...count, filter: false }),
    // differs: patches and filters of these work
    'primary.updb.maxAttempts': field.integer(count),
    'primary.updb.minPasswordLength': field.integer(count),
    'primary.updb.requireMixedCase': rule(),
    'primary.updb.requireNumberChar': rule(),
    'primary.updb.requireSpecialChar': rule(),
    // wire: answers leave it out while it is unset
    'secondary.requireExtJwtSigner': field.string({ nullable: true, hidden: true }),
    'secondary.requireTotp': rule(),
  },
  shows: { always: { secondary: object({ requireTotp: flag }, { requireExtJwtSigner: text }) } },
})
