import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import { flag, reference, texts } from '../kernel/schema.js'

/** A credential of an identity: name and password, or a client certificate. */
export const authenticator = defineEntity({
  kind: 'authenticators',
  singular: 'authenticator',
  owner: 'identity',
  followed: true,
  counted: true,
  fields: {
    method: field.string({ write: 'R--' }),
    identityId: field.ref('identities', { write: 'R--', symbolName: 'identity' }),
    // differs: limits hold wherever a name or password is set; no filter sees a hash
    username: field.string({
      write: 'ORO',
      nullable: true,
      unique: true,
      min: 4,
      max: 100,
      symbolName: 'updbUsername',
      hidden: true,
    }),
    password: field.string({
      write: 'ORO',
      nullable: true,
      min: 5,
      max: 100,
      filter: false,
      secret: true,
    }),
    certPem: field.string({ write: 'O--', nullable: true, max: 65536, hidden: true }),
    fingerprint: field.string({
      write: '---',
      nullable: true,
      unique: true,
      symbolName: 'certFingerprint',
      hidden: true,
    }),
    isIssuedByNetwork: field.bool({ write: '---', hidden: true }),
    caId: field.string({ write: '---', nullable: true, filter: false, hidden: true }),
    enrollmentId: field.string({ write: '---', nullable: true, filter: false, hidden: true }),
    unverifiedCertPem: field.string({ write: '---', nullable: true, filter: false, hidden: true }),
    unverifiedFingerprint: field.string({ write: '---', nullable: true, filter: false, hidden: true }),
  },
  links: { identities: { to: 'identities', at: 'identityId' } },
  shows: {
    always: { identity: reference },
    sometimes: { ...texts('certPem', 'fingerprint', 'username'), isIssuedByNetwork: flag },
  },
})
