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

type Callers = readonly PeerName[]
type Row = readonly [path: string, callers: ReadonlySet<PeerName>]

/** One row for each method of a service. */
const rows = <D extends ServiceDefinition>(
  definition: D,
  callers: Readonly<Record<keyof D, Callers>>,
): readonly Row[] =>
  Object.entries(definition).map(([name, { path }]) => [path, new Set(callers[name as keyof D])])

const gateway: Callers = ['gateway']

const none: Callers = []

/** The API of the kinds of one owner. `viewers`: services that show names of its rows. */
const entities = (viewers: Callers, more: Partial<Record<keyof EntityServiceService, Callers>> = {}) =>
  rows(EntityServiceService, {
    list: gateway,
    get: gateway,
    create: gateway,
    update: gateway,
    delete: gateway,
    select: gateway,
    count: gateway,
    listAttributes: gateway,
    view: viewers,
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
    watch: [...followers, 'gateway'],
    pull: followers,
    load: followers,
    row: followers,
    reach: writers,
    head: [...writers, 'gateway'],
  })

/** Who changed what. */
const audit = rows(AuditServiceService, { list: gateway, get: gateway })

/** Integrity checks and snapshots, which identity runs. */
const maintenance = rows(MaintenanceServiceService, { check: ['identity'], export: ['identity'] })

/** Tools and probes ask every process, also through another service. So do gateways, for their status page. */
const standard: readonly Row[] = [
  ...rows(HealthService, { check: peerNames, list: peerNames, watch: peerNames }),
  ...rows(StatusServiceService, { describe: gateway }),
  ...reflectionPaths.map((path): Row => [path, new Set(['operator'])]),
]

const table: Readonly<Partial<Record<PeerName, readonly Row[]>>> = {
  identity: [
    ...entities(['pki', 'policy', 'sessions']),
    ...changes({
      followers: ['pki', 'policy', 'sessions'],
      writers: ['pki', 'policy', 'sessions'],
    }),
    ...rows(IdentityServiceService, {
      authenticate: gateway,
      openRouterSession: ['sessions'],
      reserveRouterName: ['sessions'],
      releaseRouterName: ['sessions'],
      getApiSession: gateway,
      getBearerSession: gateway,
      checkApiSession: ['sessions'],
      markActivity: ['gateway', 'sessions'],
      disableIdentity: gateway,
      enableIdentity: gateway,
      traceIdentity: gateway,
      reportConnections: ['sessions'],
      expectEnrollment: ['pki'],
      addAuthenticator: ['pki'],
      enrollByCertificate: gateway,
      listOwnAuthenticators: gateway,
      getOwnAuthenticator: gateway,
      updateOwnAuthenticator: gateway,
      extendOwnAuthenticator: gateway,
      verifyOwnAuthenticator: gateway,
      createSessionCertificate: gateway,
      startMfa: gateway,
      getMfa: gateway,
      verifyMfa: gateway,
      passMfa: gateway,
      listRecoveryCodes: gateway,
      renewRecoveryCodes: gateway,
      removeMfa: gateway,
      removeMfaOf: gateway,
      reEnrollAuthenticator: gateway,
      startIntegrityRun: gateway,
      getIntegrityRun: gateway,
      takeSnapshot: gateway,
    }),
    ...rows(OidcServiceService, {
      startLogin: gateway,
      getLogin: gateway,
      presentCredential: gateway,
      presentCode: gateway,
      enrollSecondFactor: gateway,
      verifySecondFactor: gateway,
      finishLogin: gateway,
      getTokens: gateway,
      revokeToken: gateway,
      endSession: gateway,
    }),
    ...audit,
  ],
  pki: [
    ...entities(['identity', 'sessions'], { select: none, listAttributes: none }),
    ...changes({
      followers: ['identity', 'sessions'],
      writers: ['identity', 'sessions'],
    }),
    ...rows(PkiServiceService, {
      getServerCertificate: ['gateway', 'sessions'],
      getTrustBundle: ['gateway', 'identity', 'sessions'],
      signTokens: ['identity'],
      getTokenKeys: ['gateway', 'identity'],
      answerChallenge: gateway,
      checkEnrollment: ['identity'],
      grantEnrollment: ['identity'],
      refreshEnrollment: gateway,
      verifyCa: gateway,
      getCaJwt: gateway,
      enroll: gateway,
      extendCertificate: ['identity'],
      issueRouterCertificates: ['sessions'],
      issueSessionCertificate: ['identity'],
    }),
    ...audit,
    ...maintenance,
  ],
  policy: [
    ...entities(['identity', 'sessions'], { list: ['gateway', 'sessions'] }),
    ...changes({
      followers: ['identity', 'sessions'],
      writers: ['identity', 'sessions'],
    }),
    ...rows(PolicyServiceService, {
      authorize: ['sessions'],
      getHeader: ['gateway', 'sessions'],
      watchHeaders: ['gateway', 'sessions'],
      getCommonRouters: ['gateway', 'sessions'],
      getIdentityRouters: ['sessions'],
      findLost: ['sessions'],
      findRequiring: ['sessions'],
      getPolicyAdvice: gateway,
      listServiceConfigs: gateway,
      putServiceConfigs: gateway,
      removeServiceConfigs: gateway,
      submitPosture: gateway,
      getPostureData: gateway,
      listFailedRequests: gateway,
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
      createSession: gateway,
      reEnrollEdgeRouter: gateway,
      admitRouter: ['pki'],
      claimRouterHosts: ['pki'],
      extendRouter: gateway,
      describeRouters: ['gateway', 'policy'],
      getRoutePath: gateway,
      inspect: gateway,
      watchEvents: gateway,
    }),
    ...audit,
    ...maintenance,
  ],
}

/** By host: which services may call each method that it hosts. What has no row is refused. */
export const callers: ReadonlyMap<PeerName, ReadonlyMap<string, ReadonlySet<PeerName>>> = new Map(
  Object.entries(table).map(([host, rows]) => [host as PeerName, new Map([...standard, ...rows])]),
)

/** The services that may call a method of a host, by its path. Undefined: the host has no such method. */
export type CallersOf = (host: PeerName, path: string) => ReadonlySet<PeerName> | undefined

export const callersOf: CallersOf = (host, path) => callers.get(host)?.get(path)
