import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'

/** A certificate by which routers recognize the connections of an API session: requested, or presented at the login. */
export const apiSessionCertificate = defineEntity({
  kind: 'current-api-session/certificates', // wire: the collection contains those of the session of the request
  singular: 'apiSessionCertificate',
  owner: 'identity',
  ids: 'short',
  fields: {
    apiSessionId: field.string({ write: '---', symbolName: 'apiSession', hidden: true }),
    subject: field.string({ write: '---' }),
    fingerprint: field.string({ write: '---' }),
    certificate: field.string({ write: '---', filter: false }),
    validFrom: field.datetime({ write: '---', filter: false }),
    validTo: field.datetime({ write: '---', filter: false }),
  },
  published: { title: 'currentApiSessionCertificate' },
})
