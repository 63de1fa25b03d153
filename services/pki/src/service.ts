import { catchUpFirst } from '@overlay/maintenance'
import { boundedQueue } from '@overlay/process/async'
import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { openPauseReports, openRefusals } from '@overlay/service'
import { changeService, type Source, startConsumers, type WaitForFollowers } from '@overlay/store/change-log'
import { startRemovingGuesses } from '@overlay/store/guesses'
import { entityService, loadersOf, namesFrom, type Viewer } from '@overlay/store/kind-store'
import { identityChecks, identityConsumer } from './consumers/identity.js'
import { sessionsChecks, sessionsConsumer } from './consumers/sessions.js'
import type { Owners } from './enroll/enroll-method.js'
import { advertisedHosts, type KeyCheckOptions, startKeyChecks } from './keys/check-keys.js'
import { type IssuerOptions, openEnrollmentIssuer } from './keys/enrollment-issuer.js'
import { openKeyringCache } from './keys/keyring-cache.js'
import { refuseOtherTrustDomain } from './keys/trust-domain.js'
import { cas } from './kinds/ca.js'
import { enrollments } from './kinds/enrollment.js'
import { foreign } from './kinds/foreign.js'
import { pkiMethods } from './methods/pki-methods.js'
import { type ProvidedKeyPaths, providedSources } from './provided-keys/key-sources.js'
import { startProvidedKeys } from './provided-keys/watch-provided-keys.js'
import { keyPayloads } from './store/key-states.js'

export interface ServiceOptions
  extends Omit<KeyCheckOptions, 'now'>,
    Omit<IssuerOptions, 'now' | 'keyring'>,
    ProvidedKeyPaths {
  /** Patterns of names that the certificates of routers may have. Empty: any but the names of the product. */
  readonly routerNames: readonly string[]
  readonly enrollmentsRunning: number
  readonly enrollmentsWaiting: number
  readonly owners: Owners
  readonly expectEnrollment: Methods<IdentityServiceService>['expectEnrollment']
  readonly viewers: { readonly identity: Viewer; readonly sessions: Viewer }
  readonly waitForFollowers: WaitForFollowers
  readonly sources: { readonly identity: Source; readonly sessions: Source }
  readonly now?: () => Date
}

/** All of the service but its connections. It serves before its consumers have loaded. */
export async function openService(options: ServiceOptions) {
  await using opening = new AsyncDisposableStack()
  const {
    changeLog,
    log,
    keySecret,
    tokenKeyRules,
    owners,
    expectEnrollment,
    sources,
    now = () => new Date(),
  } = options
  const keys = opening.use(await openKeyringCache(changeLog, { keySecret, tokenKeyRules, log, now }))
  const { keyring, tokenKeyring, reach: reachKeys } = keys
  const { trustDomain } = await keyring() // fails the start where the secret does not fit or keys are missing
  refuseOtherTrustDomain(options.trustDomain, trustDomain)
  opening.use(await startKeyChecks({ ...options, now }))
  const hosts = advertisedHosts(options.address, options.ctrlAddress)
  opening.use(startProvidedKeys({ ...options, hosts, now }, providedSources(options)))

  const issuer = openEnrollmentIssuer({ ...options, now, keyring })
  const names = namesFrom(options.viewers)
  const definitions = {
    identity: identityConsumer({ source: sources.identity, issuer, names }),
    sessions: sessionsConsumer({ source: sources.sessions, issuer, names }),
  }
  const consumers = opening.use(startConsumers(changeLog, definitions, log))

  const kinds = [
    enrollments({ changeLog, issuer, names, expectEnrollment, now }),
    cas(options.waitForFollowers),
  ]
  const queue = boundedQueue({
    name: 'signing',
    running: options.enrollmentsRunning,
    waiting: options.enrollmentsWaiting,
  })
  const routerNaming = {
    addresses: [options.address, options.ctrlAddress],
    patterns: options.routerNames,
    names,
    log,
    now,
  }
  const pauseReports = opening.use(openPauseReports(changeLog, log))
  opening.use(startRemovingGuesses(changeLog.db, log))
  const deps = {
    changeLog,
    issuer,
    consumers,
    queue,
    keyring,
    tokenKeyring,
    reachKeys,
    tokenKeyRules,
    address: options.address,
    now,
    owners,
    routerNaming,
    noteRefusal: openRefusals(log, 'enrollment refused'),
    pauseReports,
  }
  const checkDeps = { changeLog, names, consumers }
  const opened = opening.move()
  return {
    entities: entityService({ changeLog, kinds, names, foreign: foreign(issuer) }),
    changes: changeService(
      changeLog,
      { ...loadersOf(changeLog.db, kinds), keys: () => keyPayloads(changeLog.db) },
      consumers,
    ),
    pki: pkiMethods(deps),
    checks: [
      catchUpFirst(consumers),
      ...identityChecks(definitions.identity, checkDeps),
      ...sessionsChecks(definitions.sessions, checkDeps),
    ],
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
