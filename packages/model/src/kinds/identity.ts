import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import { flag, named, object, reference, text, texts, time } from '../kernel/schema.js'

const precedences = ['default', 'required', 'failed'] as const

const envInfo = named(
  'envInfo',
  object({}, texts('arch', 'domain', 'hostname', 'os', 'osRelease', 'osVersion')),
)
const sdkInfo = named(
  'sdkInfo',
  object({}, texts('appId', 'appVersion', 'branch', 'revision', 'type', 'version')),
)
const enrollment = object(
  { id: text, token: text, jwt: text, expiresAt: time },
  { caId: text, ca: reference },
)

/** A person, device or service that may log in. */
export const identity = defineEntity({
  kind: 'identities',
  singular: 'identity',
  owner: 'identity',
  ids: 'short',
  followed: true,
  counted: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    // wire: five words are accepted, Default and Router are stored; shown as typeId and as a reference
    type: field.oneOf(['Default', 'User', 'Device', 'Service', 'Router'], { write: 'RRO', hidden: true }),
    isAdmin: field.bool({ write: 'RRO' }),
    isDefaultAdmin: field.bool({ write: '---' }),
    roleAttributes: field.attributes(),
    externalId: field.string({ nullable: true, unique: true }),
    authPolicyId: field.ref('auth-policies', { nullable: true, fallback: 'default' }),
    appData: field.map(),
    defaultHostingCost: field.integer({ min: 0, max: 65535, filter: false }),
    defaultHostingPrecedence: field.oneOf(precedences, { filter: false }),
    serviceHostingCosts: field.object({
      refs: 'services',
      fallback: {},
      schema: {
        type: ['object', 'null'],
        additionalProperties: { type: 'integer', minimum: 0, maximum: 65535 },
      },
    }),
    serviceHostingPrecedences: field.object({
      refs: 'services',
      fallback: {},
      schema: { type: ['object', 'null'], additionalProperties: { type: 'string' } },
    }),
    envInfo: field.object({ write: '---', fallback: {}, schema: envInfo }),
    sdkInfo: field.object({ write: '---', fallback: {}, schema: sdkInfo }),
    disabledAt: field.datetime({ write: '---', filter: false, hidden: true }),
    disabledUntil: field.datetime({ write: '---', filter: false, hidden: true }),
    // The request for an enrollment. Secret: answers show the enrollments under the same name, which are no requests.
    enrollment: field.object({
      write: 'O--',
      secret: true,
      schema: {
        type: ['object', 'null'],
        properties: {
          ott: { type: ['boolean', 'object'] },
          ottca: { type: ['string', 'object'] },
          updb: { type: ['string', 'object'] },
        },
      },
    }),
  },
  links: {
    'auth-policies': { to: 'auth-policies', at: 'authPolicyId' },
    authenticators: { to: 'authenticators', through: 'identity' },
    'edge-router-policies': { to: 'edge-router-policies', answeredBy: 'policy' },
    'edge-routers': { to: 'edge-routers', answeredBy: 'policy' },
    enrollments: { to: 'enrollments', through: 'identity' },
    'failed-service-requests': { to: 'identities', special: true },
    'posture-data': { to: 'identities', special: true },
    'service-configs': { to: 'identities', special: true },
    'service-policies': { to: 'service-policies', answeredBy: 'policy' },
    services: { to: 'services', answeredBy: 'policy' },
  },
  shows: {
    always: {
      authenticators: named(
        'identityAuthenticators',
        object({}, { cert: object(texts('fingerprint', 'id')), updb: object(texts('id', 'username')) }),
      ),
      disabled: flag,
      enrollment: named(
        'identityEnrollments',
        object({}, { ott: enrollment, ottca: enrollment, updb: enrollment }),
      ),
      hasApiSession: flag,
      hasEdgeRouterConnection: flag,
      isMfaEnabled: flag,
      type: reference,
      typeId: text,
    },
    sometimes: { disabledAt: time, disabledUntil: time },
  },
})
