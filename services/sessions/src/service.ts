import { catchUpFirst } from '@overlay/maintenance'
import { edgeRouter, session, transitRouter } from '@overlay/model'
import {
  type ChangeServiceService,
  type EntityServiceService,
  type IdentityServiceService,
  type Methods,
  ownContext,
  type PkiServiceService,
  type PolicyServiceService,
} from '@overlay/rpc'
import {
  announcing,
  type Bus,
  type ChangeLog,
  changeService,
  deletedIds,
  fabricEvents,
  headsReader,
  type RowChange,
  type Source,
  startConsumers,
  type WaitForFollowers,
} from '@overlay/store/change-log'
import { entityService, loadersOf, namesFrom, type Viewer } from '@overlay/store/kind-store'
import { bestEffort } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import type { ActivityDeps } from './access/activity.js'
import { emitEnded } from './access/session-event.js'
import { routerCertificates } from './certificates/router-certificates.js'
import { identityChecks, identityConsumer } from './consumers/identity.js'
import { policyChecks, policyConsumer } from './consumers/policy.js'
import { type Control, type ControlListen, openControl } from './control-channel.js'
import { openGrants } from './grants/grants.js'
import { type HeldSessions, openHeldSessions } from './grants/held-sessions.js'
import { watchGrants } from './grants/watch-grants.js'
import { circuits } from './kinds/circuit.js'
import { controllers } from './kinds/controller.js'
import { edgeRouters } from './kinds/edge-router.js'
import { foreign } from './kinds/foreign.js'
import { links } from './kinds/link.js'
import type { RouterNames } from './kinds/reserved-names.js'
import { sessions } from './kinds/session.js'
import { terminators } from './kinds/terminator.js'
import { transitRouters } from './kinds/transit-router.js'
import { DELETE_ROUTER_MS, HEAD_MS } from './limits.js'
import { sessionsMethods } from './methods/sessions-methods.js'
import { openClientRouterList } from './routers/client-routers.js'
import { openRouterDirectory, type RouterDirectory } from './routers/router-directory.js'
import { isEdgeRouter } from './store/router.js'
import { startSweeper, withSweep } from './sweep/sweeper.js'
import { openServiceDirectory } from './terminators/service-directory.js'
import { openClientToken } from './tokens/client-tokens.js'
import { openSessionKeys } from './tokens/session-keys.js'
import { openSessionTokens } from './tokens/session-tokens.js'

/** A followed service. */
export interface Owner {
  readonly source: Source
  readonly entities: Viewer
  readonly changes: Pick<Methods<ChangeServiceService>, 'head'>
}

export interface ServiceOptions {
  readonly changeLog: ChangeLog
  readonly log: Logger
  readonly identity: Owner & {
    readonly calls: Pick<
      Methods<IdentityServiceService>,
      'checkApiSession' | 'openRouterSession' | keyof RouterNames | keyof ActivityDeps['identity']
    >
  }
  readonly policy: Owner & {
    readonly entities: Pick<Methods<EntityServiceService>, 'list'>
    readonly calls: Methods<PolicyServiceService>
  }
  readonly pki: {
    readonly entities: Viewer
    /** Whose changes of keys are followed. */
    readonly source: Source
    readonly calls: Pick<
      Methods<PkiServiceService>,
      'issueRouterCertificates' | 'getSessionKey' | 'getTokenKeys' | 'getTrustBundle'
    >
  }
  readonly waitForFollowers: WaitForFollowers
  readonly bus: Bus
  /** Undefined: this replica takes no connections of routers. */
  readonly listen?: ControlListen | undefined
}

/** All of the service but its connections. It serves before its consumers have loaded. */
export async function openService(options: ServiceOptions) {
  await using opening = new AsyncDisposableStack()
  const { log, identity, policy, pki, waitForFollowers, bus, listen } = options
  const events = fabricEvents(bus)
  const listeners: ((changes: readonly RowChange[]) => void)[] = [(changes) => emitEnded(events, changes)]
  const changeLog = announcing(options.changeLog, (changes) => {
    for (const listener of listeners) listener(changes)
  })
  const { db } = changeLog
  const watch = opening.use(watchGrants(policy.calls, log))
  const grants = openGrants(policy.calls, watch)
  const held = opening.use(await openHeldSessions(changeLog, log))
  listeners.push((changes) => held.ended(deletedRows(changes, session.kind)))
  const names = namesFrom({ identity: identity.entities, policy: policy.entities, pki: pki.entities })
  const heads = headsReader(db, ['identity', 'policy'], HEAD_MS)
  const sweeperDeps = { events, policy: policy.calls, names, heads, log }
  const sweeper = opening.use(startSweeper({ ...sweeperDeps, changeLog: endingHeld(changeLog, held) }))
  const revocations = { wake: sweeper.wake, revoked: grants.revoked }
  const definitions = {
    identity: identityConsumer(identity.source, revocations),
    policy: policyConsumer(policy.source, revocations),
  }
  const consumers = opening.use(startConsumers(changeLog, definitions, log))
  const followed = {
    identity: withSweep('identity', consumers.identity, sweeper),
    policy: withSweep('policy', consumers.policy, sweeper),
  }
  const directory = opening.use(await openRouterDirectory(changeLog, log))
  const services = opening.use(await openServiceDirectory(policy.source, log))
  const keys = opening.use(await openSessionKeys({ pki: pki.calls, source: pki.source, log }))
  const tokens = openSessionTokens({ keys })
  const certificates = routerCertificates({ changeLog, pki: pki.calls, directory })
  const openingControl = openControl({
    changeLog,
    bus,
    directory,
    log,
    listen,
    owners: {
      ...{ identity, policy, pki, heads, services, tokens, deleteRouter, createSession, grantWatch: watch },
      policyHead: headsReader(db, ['policy'], HEAD_MS),
    },
    certificates,
  })
  const control = opening.use(await openingControl)
  if (control.traffic) listeners.push(control.traffic.terminators.written)
  async function deleteRouter(id: string): Promise<void> {
    const kind = (await isEdgeRouter(db, id)) ? edgeRouter.kind : transitRouter.kind
    await entities.delete({ kind, id }, ownContext(AbortSignal.timeout(DELETE_ROUTER_MS)))
  }
  function createSession(...args: Parameters<typeof methods.createSession>) {
    return methods.createSession(...args)
  }
  const routerDeps = {
    db,
    identity: identity.calls,
    pki: pki.entities,
    waitForFollowers: closingChannels(directory, control, waitForFollowers),
  }
  const clientRouters = openClientRouterList(directory, control.presence)
  const clientToken = openClientToken(tokens, clientRouters)
  const kinds = [
    circuits(control.traffic?.circuits),
    controllers,
    edgeRouters(routerDeps),
    links(control.links),
    sessions(policy.calls, names, clientToken, clientRouters.evaluating),
    terminators(consumers.policy),
    transitRouters(routerDeps),
  ]
  const entities = entityService({ changeLog, kinds, names, foreign })
  const methods = sessionsMethods({
    ...options,
    ...control,
    changeLog,
    entities,
    model: control.traffic?.model,
    grants,
    held,
    clientRouters,
    clientToken,
    tokens,
    certificates,
    waitForFollowers: routerDeps.waitForFollowers,
    identity: identity.calls,
  })
  const checkDeps = { changeLog, names, consumers: followed }
  const opened = opening.move()
  return {
    entities,
    changes: changeService(changeLog, loadersOf(db, kinds), followed),
    sessions: methods,
    control,
    checks: [
      catchUpFirst(followed),
      ...identityChecks(checkDeps),
      ...policyChecks(policy.source, { ...checkDeps, policy: policy.calls, heads }),
    ],
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** Sessions that a sweep has ended leave memory before any other call is answered. */
const endingHeld = (changeLog: ChangeLog, held: Pick<HeldSessions, 'ended'>): ChangeLog => ({
  ...changeLog,
  appended(position, changes) {
    held.ended(deletedIds(changes, session.kind))
    return changeLog.appended(position, changes)
  },
})

const deletedRows = (changes: readonly RowChange[], kind: string): string[] =>
  changes.flatMap((change) => (change.kind === kind && !change.after ? [change.id] : []))

/** The channel of a router that was disabled or deleted is closed before the answer, and it is shown offline. */
const closingChannels =
  (
    directory: Pick<RouterDirectory, 'waitFor'>,
    control: Pick<Control, 'saved'>,
    waitForFollowers: WaitForFollowers,
  ): WaitForFollowers =>
  async (written, context) => {
    const { position } = written
    if (position) {
      await bestEffort('sessions', directory.waitFor(position, context.signal))
      await bestEffort('sessions', control.saved())
    }
    return waitForFollowers(written, context)
  }
