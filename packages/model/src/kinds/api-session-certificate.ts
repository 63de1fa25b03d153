import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'

/** By which routers know the connections of an API session. Made with a request for one, or by a login with one. */
export const apiSessionCertificate = defineEntity({
  kind: 'current-api-session/certificates', // wire: each session has a collection of its own
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
  links: {},
  published: { title: 'currentApiSessionCertificate' },
})
