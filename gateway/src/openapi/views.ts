import {
  anything,
  flag,
  listOf,
  type Members,
  mapOf,
  named,
  object,
  oneOf,
  orNull,
  reference,
  text,
  time,
  whole,
} from './schemas.js'

/** What the owner's view adds to the members of a kind's definition, or shows in their place. */
export interface View {
  readonly always?: Members
  /** Left out where there is nothing to show. */
  readonly sometimes?: Members
  /** The same, where clients ask. */
  readonly sometimesForClients?: Members
  /** What further members there are, as one of them says. */
  readonly variants?: { readonly by: string; readonly of: Readonly<Record<string, Variant>> }
}

/** `title` as the published documents have it. */
export interface Variant extends Pick<View, 'always' | 'sometimes'> {
  readonly title: string
}

const said = (...names: readonly string[]): Members => Object.fromEntries(names.map((name) => [name, text]))

const enrollment = object(
  { id: text, token: text, jwt: text, expiresAt: time },
  { caId: text, ca: reference },
)
const enrollmentOfRouter: Members = {
  enrollmentCreatedAt: orNull(time),
  enrollmentExpiresAt: orNull(time),
  enrollmentJwt: orNull(text),
  enrollmentToken: orNull(text),
}
const connection: Members = {
  hostname: text,
  isOnline: flag,
  supportedProtocols: mapOf(text),
  syncStatus: text,
}
const routerOfSession: Members = { ...connection, name: text, cost: whole, disabled: flag, noTraversal: flag }

/** As sessions and services show it to clients. */
export const commonEdgeRouter = named('commonEdgeRouterProperties', object(routerOfSession))

const postureQueryProcess = named('postureQueryProcess', object({}, { osType: text, path: text }))
const postureQuery = named(
  'postureQuery',
  object(
    { id: text, isPassing: flag, queryType: text, timeout: whole, timeoutRemaining: whole },
    {
      _links: anything,
      createdAt: time,
      process: postureQueryProcess,
      processes: orNull(listOf(postureQueryProcess)),
      tags: anything,
      updatedAt: time,
    },
  ),
)

const claim = named(
  'externalIdClaim',
  object({
    index: orNull(whole),
    location: orNull(text),
    matcher: orNull(text),
    matcherCriteria: orNull(text),
    parser: orNull(text),
    parserCriteria: orNull(text),
  }),
)

const texts = listOf(text)
const osType = oneOf('Windows', 'WindowsServer', 'Android', 'iOS', 'Linux', 'macOS')
const operatingSystem = named('operatingSystem', object({ type: osType, versions: orNull(texts) }))
const process = { hashes: orNull(texts), osType, path: text }

const postureChecks = {
  DOMAIN: { title: 'Domain', always: { domains: texts } },
  MAC: { title: 'MacAddress', always: { macAddresses: texts } },
  MFA: {
    title: 'Mfa',
    always: { timeoutSeconds: whole },
    sometimes: { ignoreLegacyEndpoints: flag, promptOnUnlock: flag, promptOnWake: flag },
  },
  OS: { title: 'OperatingSystem', always: { operatingSystems: listOf(operatingSystem) } },
  PROCESS: {
    title: 'Process',
    always: { process: named('process', object(process, { signerFingerprint: text })) },
  },
  PROCESS_MULTI: {
    title: 'ProcessMulti',
    always: {
      processes: listOf(named('processMulti', object({ ...process, signerFingerprints: texts }))),
      semantic: oneOf('AllOf', 'AnyOf'),
    },
  },
}

export const views: Readonly<Record<string, View>> = {
  'api-sessions': {
    always: { authQueries: listOf(anything), identity: reference, token: text },
    sometimes: { cachedLastActivityAt: time },
  },
  'auth-policies': {
    always: { secondary: object({ requireTotp: flag }, { requireExtJwtSigner: text }) },
  },
  authenticators: {
    always: { identity: reference },
    sometimes: { ...said('certPem', 'fingerprint', 'username'), isIssuedByNetwork: flag },
  },
  cas: { always: said('verificationToken'), sometimes: { externalIdClaim: claim } },
  'edge-router-policies': { always: { isSystem: flag } },
  'edge-routers': {
    always: {
      ...connection,
      versionInfo: named('versionInfo', object(said('arch', 'buildDate', 'os', 'revision', 'version'))),
    },
    sometimes: { ...enrollmentOfRouter, fingerprint: text },
  },
  enrollments: {
    always: { ...said('jwt', 'method', 'token') },
    sometimes: {
      ...said('caId', 'edgeRouterId', 'identityId', 'transitRouterId'),
      edgeRouter: reference,
      identity: reference,
      transitRouter: reference,
    },
  },
  'external-jwt-signers': {
    always: { notAfter: time, notBefore: time },
    sometimesForClients: { clientId: text },
  },
  identities: {
    always: {
      authPolicy: reference,
      authenticators: named(
        'identityAuthenticators',
        object({}, { cert: object(said('fingerprint', 'id')), updb: object(said('id', 'username')) }),
      ),
      disabled: flag,
      enrollment: named(
        'identityEnrollments',
        object({}, { ott: enrollment, ottca: enrollment, updb: enrollment }),
      ),
      envInfo: named(
        'envInfo',
        object({}, said('arch', 'domain', 'hostname', 'os', 'osRelease', 'osVersion')),
      ),
      hasApiSession: flag,
      hasEdgeRouterConnection: flag,
      isMfaEnabled: flag,
      sdkInfo: named(
        'sdkInfo',
        object({}, said('appId', 'appVersion', 'branch', 'revision', 'type', 'version')),
      ),
      type: reference,
      typeId: text,
    },
    sometimes: { disabledAt: time, disabledUntil: time },
  },
  'posture-check-types': { always: { operatingSystems: listOf(operatingSystem) } },
  'posture-checks': {
    always: { roleAttributes: texts, version: whole },
    variants: { by: 'typeId', of: postureChecks },
  },
  services: {
    // wire: null where a list shows them for the sake of something else
    always: {
      config: orNull(anything),
      permissions: orNull(listOf(oneOf('Dial', 'Bind', 'Invalid'))),
      postureQueries: listOf(
        named(
          'postureQueries',
          object({
            policyId: text,
            policyType: oneOf('Dial', 'Bind', 'Invalid'),
            isPassing: flag,
            postureQueries: listOf(postureQuery),
          }),
        ),
      ),
    },
  },
  sessions: {
    always: {
      edgeRouters: orNull(
        listOf(named('sessionEdgeRouter', object({ ...routerOfSession, urls: mapOf(text) }))),
      ),
      servicePolicies: listOf(reference),
    },
  },
  terminators: { always: { routerId: text, serviceId: text } },
  'transit-routers': { always: { isOnline: flag }, sometimes: enrollmentOfRouter },
}
