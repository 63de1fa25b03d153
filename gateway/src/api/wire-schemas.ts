import { apiSession, type JsonSchema, readSchemaOf } from '@overlay/model'
import {
  commonMembers,
  flag,
  integer,
  links,
  listOf,
  mapOf,
  named,
  object,
  orNull,
  text,
  time,
} from '@overlay/model/schema'

// Schemas, for the served documents, of answers that belong to no kind.

const { properties, required } = readSchemaOf(apiSession) as {
  readonly properties: Readonly<Record<string, JsonSchema>>
  readonly required: readonly string[]
}

export const apiSessionSchema = named('currentApiSessionDetail', {
  type: 'object',
  properties: { ...properties, expiresAt: time, expirationSeconds: integer },
  required: [...required, 'cachedLastActivityAt', 'expiresAt', 'expirationSeconds'],
})

export const extendedSchema = named('identityExtendCerts', object({ ca: text, clientCert: text }))

export const sessionCertificateSchema = named(
  'currentApiSessionCertificateCreateResponse',
  object({ _links: links, id: text, cas: text, certificate: text }),
)

const version = named('apiVersion', object({ path: text, apiBaseUrls: listOf(text) }))

export const versionSchema = named(
  'version',
  object({
    apiVersions: mapOf(mapOf(version)),
    buildDate: text,
    capabilities: listOf(text),
    revision: text,
    runtimeVersion: text,
    version: text,
  }),
)

export const totpTokenSchema = named('totpToken', object({ token: text, issuedAt: time }))

export const specSchema = named('specDetail', object({ ...commonMembers, name: text }))

export const protocolsSchema = named('listProtocols', mapOf(named('protocol', object({ address: text }))))

export const serviceUpdatesSchema = named(
  'currentApiSessionServiceUpdateList',
  object({ lastChangeAt: time }),
)

/** The members depend on the method. */
export const enrolledSchema = named('enrollmentCerts', object({}, { ca: text, cert: text, serverCert: text }))

export const mfaSchema = named(
  'detailMfa',
  object(
    { ...commonMembers, isVerified: flag, recoveryCodes: orNull(listOf(text)) },
    { provisioningUrl: text },
  ),
)

export const recoveryCodesSchema = named(
  'detailMfaRecoveryCodes',
  object({ ...commonMembers, recoveryCodes: listOf(text) }),
)
