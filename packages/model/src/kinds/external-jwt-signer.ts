import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import { text, time } from '../kernel/schema.js'

const optional = { nullable: true } as const

/** A third party whose signed tokens identify clients. Its key is that of a certificate, or in a list at an address. */
export const externalJwtSigner = defineEntity({
  kind: 'external-jwt-signers',
  singular: 'externalJwtSigner',
  owner: 'identity',
  followed: true, // sessions that must present its tokens show its address
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    enabled: field.bool({ write: 'RRO' }),
    issuer: field.string({ write: 'RRO', min: 1, max: 1000, unique: true }),
    audience: field.string({ write: 'RRO' }),
    kid: field.string({ ...optional, max: 1000, unique: true }),
    certPem: field.string({ ...optional, max: 65536 }),
    jwksEndpoint: field.string({ ...optional, format: 'uri', filter: false }),
    claimsProperty: field.string({ fallback: 'sub' }),
    useExternalId: field.bool(),
    // passed on to clients
    externalAuthUrl: field.string({ ...optional, filter: false }), // wire: blank where the command line has none
    clientId: field.string(optional),
    scopes: field.strings(),
    // of the certificate
    commonName: field.string({ write: '---' }),
    fingerprint: field.string({ ...optional, write: '---', unique: true }),
    notBefore: field.datetime({ write: '---', hidden: true }),
    notAfter: field.datetime({ write: '---', hidden: true }),
  },
  shows: {
    always: { notAfter: time, notBefore: time },
    clients: {
      title: 'clientExternalJwtSignerDetail',
      members: ['clientId', 'externalAuthUrl', 'name', 'scopes'],
      sometimes: { clientId: text },
    },
  },
})
