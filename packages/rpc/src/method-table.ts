import type { ServiceDefinition } from '@grpc/grpc-js'
import { HealthService } from './gen/health/v1/health.js'
import { AuditServiceService } from './gen/overlay/audit/v1/audit.js'
import { ChangeServiceService } from './gen/overlay/change/v1/change.js'
import { EntityServiceService } from './gen/overlay/entity/v1/entity.js'
import { IdentityServiceService } from './gen/overlay/identity/v1/identity.js'
import { MaintenanceServiceService } from './gen/overlay/maintenance/v1/maintenance.js'
import { OidcServiceService } from './gen/overlay/oidc/v1/oidc.js'
import { PkiServiceService } from './gen/overlay/pki/v1/pki.js'
import { PolicyServiceService } from './gen/overlay/policy/v1/policy.js'
import { SessionsServiceService } from './gen/overlay/sessions/v1/sessions.js'
import { StatusServiceService } from './gen/overlay/status/v1/status.js'
import { type PeerName, peerNames } from './peer-name.js'
import { reflectionPaths } from './reflection.js'

/** What the table says about a method of a host. */
export interface MethodRow {
  /** The services that may call the method. */
  readonly callers: readonly PeerName[]
  /** It may be executed twice: a read, or a write whose repetition changes nothing. */
  readonly retryable?: true
}

type Row = readonly [path: string, row: MethodRow]

/** One row for each method of a service. */
const rows = <D extends ServiceDefinition>(
  definition: D,
  methods: Readonly<Record<keyof D, MethodRow>>,
): readonly Row[] => Object.entries(definition).map(([name, { path }]) => [path, methods[name as keyof D]])

type Callers = readonly PeerName[]

const retryable = true
const gateway: Callers = ['gateway']
const sessions: Callers = ['sessions']
const none: Callers = []

/**
 * The API of the kinds of one owner.
 * @param viewers services that show names of its rows
 */
const entities = (viewers: Callers, more: Partial<Record<keyof EntityServiceService, MethodRow>> = {}) =>
  rows(EntityServiceService, {
    list: { callers: gateway, retryable },
    get: { callers: gateway, retryable },
    create: { callers: gateway },
    update: { callers: gateway },
    delete: { callers: gateway },
    select: { callers: gateway, retryable },
    count: { callers: gateway, retryable },
    listAttributes: { callers: gateway, retryable },
    view: { callers: viewers, retryable },
    ...more,
  })

interface ChangeReaders {
  /** Services that keep what they need of the rows. */
  readonly followers: Callers
  /** Services whose writes wait until this one has applied them. */
  readonly writers: Callers
}

/**
 * Gateways keep no rows: they drop what they cache when one changes, and notice when an owner is silent. Services call
 * `head` in 0.1.0 only: unused since 0.2.0.
 */
const changes = ({ followers, writers }: ChangeReaders) =>
  rows(ChangeServiceService, {
    watch: { callers: [...followers, 'gateway'] },
    pull: { callers: followers, retryable },
    load: { callers: followers },
    row: { callers: followers },
    reach: { callers: writers, retryable },
    head: { callers: [...writers, 'gateway'], retryable },
  })

/** Who changed what. */
const audit = rows(AuditServiceService, {
  list: { callers: gateway, retryable },
  get: { callers: gateway, retryable },
})

/** Integrity checks and snapshots, which identity runs. */
const maintenance = rows(MaintenanceServiceService, {
  check: { callers: ['identity'] },
  export: { callers: ['identity'] },
})

/** Tools and probes ask every process, also through another service. So do gateways, for their status page. */
const standard: readonly Row[] = [
  ...rows(HealthService, {
    check: { callers: peerNames },
    list: { callers: peerNames },
    watch: { callers: peerNames },
  }),
  ...rows(StatusServiceService, { describe: { callers: gateway } }),
  ...reflectionPaths.map((path): Row => [path, { callers: ['operator'] }]),
]

const table: Readonly<Partial<Record<PeerName, readonly Row[]>>> = {
  identity: [
    ...entities(['pki', 'policy', 'sessions']),
    ...changes({
      followers: ['pki', 'policy', 'sessions'],
      writers: ['pki', 'policy', 'sessions'],
    }),
    ...rows(IdentityServiceService, {
      authenticate: { callers: gateway },
      openRouterSession: { callers: sessions, retryable }, // finds the one that was opened before
      reserveRouterName: { callers: sessions, retryable },
      releaseRouterName: { callers: sessions, retryable },
      getApiSession: { callers: gateway, retryable },
      getBearerSession: { callers: gateway, retryable },
      checkApiSession: { callers: sessions, retryable },
      markActivity: { callers: ['gateway', 'sessions'], retryable },
      disableIdentity: { callers: gateway },
      enableIdentity: { callers: gateway },
      traceIdentity: { callers: gateway },
      reportConnections: { callers: sessions, retryable },
      expectEnrollment: { callers: ['pki'], retryable },
      addAuthenticator: { callers: ['pki'] },
      enrollByCertificate: { callers: gateway },
      listOwnAuthenticators: { callers: gateway, retryable },
      getOwnAuthenticator: { callers: gateway, retryable },
      updateOwnAuthenticator: { callers: gateway },
      extendOwnAuthenticator: { callers: gateway },
      verifyOwnAuthenticator: { callers: gateway },
      createSessionCertificate: { callers: gateway },
      startMfa: { callers: gateway },
      getMfa: { callers: gateway, retryable },
      verifyMfa: { callers: gateway },
      passMfa: { callers: gateway },
      listRecoveryCodes: { callers: gateway },
      renewRecoveryCodes: { callers: gateway },
      removeMfa: { callers: gateway },
      removeMfaOf: { callers: gateway },
      reEnrollAuthenticator: { callers: gateway },
      startIntegrityRun: { callers: gateway },
      getIntegrityRun: { callers: gateway },
      takeSnapshot: { callers: gateway },
    }),
    ...rows(OidcServiceService, {
      startLogin: { callers: gateway },
      getLogin: { callers: gateway, retryable },
      presentCredential: { callers: gateway },
      presentCode: { callers: gateway },
      enrollSecondFactor: { callers: gateway },
      verifySecondFactor: { callers: gateway },
      finishLogin: { callers: gateway },
      getTokens: { callers: gateway },
      revokeToken: { callers: gateway, retryable },
      endSession: { callers: gateway, retryable },
      createTotpToken: { callers: gateway },
    }),
    ...audit,
  ],
  pki: [
    ...entities(['identity', 'sessions'], {
      select: { callers: none, retryable },
      listAttributes: { callers: none, retryable },
    }),
    ...changes({
      followers: ['identity', 'sessions'],
      writers: ['identity', 'sessions'],
    }),
    ...rows(PkiServiceService, {
      getServerCertificate: { callers: ['gateway', 'sessions'], retryable },
      getTrustBundle: { callers: ['gateway', 'identity', 'sessions'], retryable },
      signTokens: { callers: ['identity'], retryable },
      getTokenKeys: { callers: ['gateway', 'identity', 'sessions'], retryable },
      getSessionKey: { callers: sessions, retryable },
      answerChallenge: { callers: gateway, retryable },
      checkEnrollment: { callers: ['identity'], retryable },
      grantEnrollment: { callers: ['identity'] },
      refreshEnrollment: { callers: gateway },
      verifyCa: { callers: gateway },
      getCaJwt: { callers: gateway, retryable },
      enroll: { callers: gateway },
      extendCertificate: { callers: ['identity'] },
      issueRouterCertificates: { callers: sessions },
      issueSessionCertificate: { callers: ['identity'] },
    }),
    ...audit,
    ...maintenance,
  ],
  policy: [
    ...entities(['identity', 'sessions'], {
      list: { callers: ['gateway', 'sessions'], retryable },
    }),
    ...changes({
      followers: ['identity', 'sessions'],
      writers: ['identity', 'sessions'],
    }),
    ...rows(PolicyServiceService, {
      authorize: { callers: sessions, retryable },
      getHeader: { callers: ['gateway', 'sessions'], retryable },
      watchHeaders: { callers: ['gateway', 'sessions'] },
      watchRouterModel: { callers: sessions },
      getCommonRouters: { callers: ['gateway', 'sessions'], retryable },
      getIdentityRouters: { callers: sessions, retryable },
      findLost: { callers: sessions, retryable },
      findRequiring: { callers: sessions, retryable },
      getPolicyAdvice: { callers: gateway, retryable },
      listServiceConfigs: { callers: gateway, retryable },
      putServiceConfigs: { callers: gateway },
      removeServiceConfigs: { callers: gateway },
      submitPosture: { callers: gateway },
      getPostureData: { callers: gateway, retryable },
      listFailedRequests: { callers: gateway, retryable },
    }),
    ...audit,
    ...maintenance,
  ],
  sessions: [
    ...entities(['identity', 'pki', 'policy']),
    ...changes({
      followers: ['identity', 'pki', 'policy'],
      writers: ['identity', 'policy'],
    }),
    ...rows(SessionsServiceService, {
      createSession: { callers: gateway, retryable }, // repeated, it finds the first one
      checkSessionToken: { callers: gateway, retryable },
      reEnrollEdgeRouter: { callers: gateway },
      admitRouter: { callers: ['pki'] },
      claimRouterHosts: { callers: ['pki'], retryable },
      extendRouter: { callers: gateway },
      describeRouters: { callers: ['gateway', 'policy'], retryable },
      getRoutePath: { callers: gateway, retryable },
      inspect: { callers: gateway, retryable },
      watchEvents: { callers: gateway },
      validate: { callers: gateway },
    }),
    ...audit,
    ...maintenance,
  ],
}

/** By host: its methods, by their paths. A call of another method is refused. */
export const methodTable: ReadonlyMap<PeerName, ReadonlyMap<string, MethodRow>> = new Map(
  Object.entries(table).map(([host, rows]) => [host as PeerName, new Map([...standard, ...rows])]),
)

/** The services that may call a method of a host, by its path. Undefined: the host has no such method. */
export type CallersOf = (host: PeerName, path: string) => Callers | undefined

export const callersOf: CallersOf = (host, path) => methodTable.get(host)?.get(path)?.callers

export const retryableMethods: ReadonlySet<string> = new Set(
  Object.values(table)
    .flat()
    .flatMap(([path, row]) => (row.retryable ? [path] : [])),
)
