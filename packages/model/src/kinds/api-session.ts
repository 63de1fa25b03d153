import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import { anyObject, listOf, reference, text, time } from '../kernel/schema.js'

/** The session of a login. No body creates one; followers get only its end. */
export const apiSession = defineEntity({
  kind: 'api-sessions',
  singular: 'apiSession',
  owner: 'identity',
  ids: 'cuid',
  followed: true,
  counted: true,
  fields: {
    token: field.string({ write: '---', secret: true }), // a credential: shown by the view, never audited
    identityId: field.ref('identities', { write: '---', symbolName: 'identity' }),
    authenticatorId: field.string({ write: '---', symbolName: 'authenticator' }),
    ipAddress: field.string({ write: '---' }),
    configTypes: { ...field.strings({ write: '---', filter: false }), load: (ids) => ids as string[] },
    isMfaRequired: field.bool({ write: '---', filter: false }),
    isMfaComplete: field.bool({ write: '---', filter: false }),
    isCertExtendable: field.bool({ write: '---', filter: false }),
    mfaPassedAt: field.datetime({ write: '---', filter: false, hidden: true }), // for posture checks
    lastActivityAt: field.datetime({ write: '---' }),
  },
  links: { sessions: { to: 'sessions', through: 'apiSession' } },
  shows: {
    always: { authQueries: listOf(anyObject), identity: reference, token: text },
    sometimes: { cachedLastActivityAt: time },
  },
  listType: 'application/json; charset=utf-8',
})
