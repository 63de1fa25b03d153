import { catchUpFirst } from '@overlay/maintenance'
import { type JobDeps, openJobMethods } from '@overlay/maintenance/jobs'
import { identity, identityType, type Service as ServiceName } from '@overlay/model'
import { issuerOf } from '@overlay/process/tokens'
import {
  CREDENTIALS,
  type MaintenanceServiceService,
  type Methods,
  type PkiServiceService,
} from '@overlay/rpc'
import { auditedRefusals, openPauseReports, openRefusals, type ServiceDeps } from '@overlay/service'
import {
  type Bus,
  type ChangeLog,
  changeService,
  consumedPosition,
  type FabricEvents,
  type Source,
  startConsumers,
  type WaitForFollowers,
  watchKinds,
} from '@overlay/store/change-log'
import { entityService, kind, loadersOf, namesFrom, type Viewer } from '@overlay/store/kind-store'
import type { Logger } from 'pino'
import { pkiChecks, pkiConsumer } from './consumers/pki.js'
import { policyChecks, policyConsumer } from './consumers/policy.js'
import { sessionsChecks, sessionsConsumer } from './consumers/sessions.js'
import { openCredentialFeed } from './credential-feed/credential-feed.js'
import { openAuthorities, openTrust } from './credentials/authorities.js'
import { openChains } from './credentials/chains.js'
import { type HashSettings, openHashing } from './credentials/hashing.js'
import type { Lifetimes } from './domain/lifetimes.js'
import type { TokenLifetimes } from './domain/oidc-claims.js'
import { openExternalTokens, type TokenSettings } from './external-tokens/external-tokens.js'
import { apiSessionCertificates, apiSessions } from './kinds/api-session.js'
import { authPolicies } from './kinds/auth-policy.js'
import { authenticators } from './kinds/authenticator.js'
import { externalJwtSigners } from './kinds/external-jwt-signer.js'
import { identities } from './kinds/identity.js'
import { AUTHORITIES_MS, guessLimits } from './limits.js'
import { waitForConfigTypesOf } from './login/wait-for-config-types.js'
import { identityMethods } from './methods/identity-methods.js'
import type { MethodDeps } from './methods/method-deps.js'
import { oidcMethods } from './methods/oidc-methods.js'
import { openSecondFactors } from './mfa/codes.js'
import { openTokens } from './oidc/tokens.js'
import { credentialLoader } from './store/credential-changes.js'
import { identityLoader } from './store/identity-rows.js'
import { passwordLookUps } from './store/password-attempts.js'
import { countSecondFactors } from './store/second-factors.js'
import { openSessionBatches } from './store/session-batches.js'

type Followed = 'pki' | 'policy' | 'sessions'
type Other = Exclude<ServiceName, 'identity'>

export interface ServiceOptions
  extends Pick<JobDeps, 'databaseUrl' | 'snapshots' | 'snapshotLimitMs' | 'snapshotMaxBytes'> {
  readonly changeLog: ChangeLog
  readonly bus: Pick<Bus, 'subscribe' | 'connected'>
  readonly events?: FabricEvents
  readonly log: Logger
  readonly keySecret: string
  /** The name of the network in authenticator apps. */
  readonly totpIssuer: string
  readonly hashing: HashSettings
  readonly lifetimes: Lifetimes
  /** Advertised `host:port` of the APIs, of which the issuer of tokens is made. */
  readonly address: string
  readonly tokenLifetimes: TokenLifetimes
  readonly tokens: TokenSettings
  /** How old the trusted authorities of the network may be. */
  readonly trustAgeMs?: number
  readonly sources: Readonly<Record<Followed, Source>>
  readonly viewers: Readonly<Record<Followed, Viewer>>
  readonly pki: MethodDeps['pki'] &
    Pick<Methods<PkiServiceService>, 'getTrustBundle' | 'signTokens' | 'getTokenKeys'>
  readonly maintenance: ServiceDeps['maintenance']
  /** The maintenance services of all other schemas. */
  readonly maintenanceOf: Readonly<Record<Other, Methods<MaintenanceServiceService>>>
  readonly waitForFollowers: WaitForFollowers
}

/** Wires all of the service but its connections. It serves before it has loaded from other services. */
export function openService(options: ServiceOptions) {
  const { changeLog, log, pki, sources, viewers, waitForFollowers, trustAgeMs = AUTHORITIES_MS } = options
  const { db } = changeLog
  const names = namesFrom(viewers)
  const opened = new AsyncDisposableStack()
  const definitions = {
    pki: pkiConsumer(sources.pki),
    policy: policyConsumer(sources.policy, names),
    sessions: sessionsConsumer(sources.sessions),
  }
  const consumers = opened.use(startConsumers(changeLog, definitions, log))

  const credentialFeed = opened.use(openCredentialFeed(changeLog, options.bus))
  const hashing = openHashing(options.hashing)
  const trust = openTrust(pki, trustAgeMs)
  const chains = openChains()
  const authorities = openAuthorities(changeLog, consumers.pki, chains)
  const noteLock = openRefusals(log, 'identity locked')
  const pauseReports = opened.use(openPauseReports(changeLog, log))
  const noteRefusal = auditedRefusals(openRefusals(log, 'login refused'), pauseReports.auditLater)
  const externalTokens = opened.use(openExternalTokens(changeLog, options.tokens))
  const credentials = {
    changeLog,
    hashing,
    trust,
    chains,
    lookUpPassword: passwordLookUps(db, { kind: 'password', limits: guessLimits.password }),
    sessionBatches: openSessionBatches(db),
    authorities,
    externalTokens,
    noteRefusal,
    noteLock,
    pauseReports,
  }
  const kinds = [
    identities({ changeLog, names, pki: { ...pki, view: viewers.pki.view }, waitForFollowers }),
    authenticators({ ...credentials, waitForFollowers }),
    apiSessions(waitForFollowers),
    apiSessionCertificates,
    authPolicies,
    externalJwtSigners,
    kind(identityType),
  ]
  const counts = { 'second-factors': countSecondFactors }
  const entities = entityService({ changeLog, kinds, names, counts })

  const checkDeps = { changeLog, names, consumers }
  const maintenance = options.maintenance([
    catchUpFirst(consumers),
    ...pkiChecks(sources.pki, checkDeps),
    ...sessionsChecks(sources.sessions, checkDeps),
    ...policyChecks(sources.policy, checkDeps),
  ])
  const allMaintenance = { identity: maintenance, ...options.maintenanceOf }
  const jobs = opened.use(openJobMethods({ ...options, db, maintenance: allMaintenance }))

  const issuer = issuerOf(options.address)
  const tokens = openTokens({ issuer, lifetimes: options.tokenLifetimes, pki, log })
  const methodDeps: MethodDeps = {
    ...credentials,
    events: options.events,
    issuer,
    tokens,
    noteEnrollmentRefusal: openRefusals(log, 'enrollment refused'),
    credentialFeed,
    waitForConfigTypes: waitForConfigTypesOf(
      async () => (await consumedPosition(db, 'policy')) !== undefined,
      consumers.policy,
    ),
    secondFactors: openSecondFactors(options.keySecret),
    totpIssuer: options.totpIssuer,
    lifetimes: options.lifetimes,
    pki,
    entities,
    waitForFollowers,
    routers: consumers.sessions,
    jobMethods: jobs.methods,
  }
  const keys = watchKinds(
    sources.pki,
    ['keys'],
    (position) => {
      const seen = { [sources.pki.schema]: position }
      trust.reload(seen)
      tokens.reloadKeys(seen)
    },
    { log, loaded: 'background' },
  )
  opened.defer(async () => (await keys)[Symbol.asyncDispose]())
  const loaders = {
    ...loadersOf(db, kinds),
    [identity.kind]: identityLoader(db),
    [CREDENTIALS]: credentialLoader(db),
  }
  return {
    entities,
    consumers,
    changes: changeService(changeLog, loaders, consumers, { confidential: [CREDENTIALS] }),
    identity: identityMethods(methodDeps),
    oidc: oidcMethods(methodDeps),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
