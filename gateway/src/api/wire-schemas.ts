import type { JsonSchema } from '../http/body.js'
import { links, reference } from './entity-schema.js'

const text = { type: 'string' }
const time = { type: 'string', format: 'date-time' }
const flag = { type: 'boolean' }

/** What answers that belong to no collection show, for the served documents. */
export const apiSessionSchema: JsonSchema = {
  title: 'currentApiSession',
  type: 'object',
  properties: {
    id: text,
    token: text,
    identityId: text,
    identity: reference,
    authenticatorId: text,
    ipAddress: text,
    configTypes: { type: 'array', items: text },
    authQueries: { type: 'array', items: { type: 'object', additionalProperties: true } },
    isMfaRequired: flag,
    isMfaComplete: flag,
    isCertExtendable: flag,
    createdAt: time,
    updatedAt: time,
    lastActivityAt: time,
    cachedLastActivityAt: time,
    expiresAt: time,
    expirationSeconds: { type: 'integer' },
  },
}

export const extendedSchema: JsonSchema = {
  title: 'identityExtendCerts',
  type: 'object',
  properties: { ca: text, clientCert: text },
}

export const sessionCertificateSchema: JsonSchema = {
  title: 'currentApiSessionCertificateCreateResponse',
  type: 'object',
  properties: { _links: links, id: text, cas: text, certificate: text },
}

const version: JsonSchema = {
  type: 'object',
  properties: { path: text, apiBaseUrls: { type: 'array', items: text } },
}

export const versionSchema: JsonSchema = {
  title: 'version',
  type: 'object',
  properties: {
    apiVersions: { type: 'object', additionalProperties: { type: 'object', additionalProperties: version } },
    buildDate: text,
    capabilities: { type: 'array', items: text },
    revision: text,
    runtimeVersion: text,
    version: text,
  },
}

export const specSchema: JsonSchema = {
  title: 'spec',
  type: 'object',
  properties: { id: text, name: text, createdAt: time, updatedAt: time },
}

export const protocolsSchema: JsonSchema = {
  title: 'protocols',
  type: 'object',
  additionalProperties: { type: 'object', properties: { address: text } },
}

export const serviceUpdatesSchema: JsonSchema = { type: 'object', properties: { lastChangeAt: time } }
