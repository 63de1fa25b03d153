import { ca, enrollment } from '@overlay/model'
import { boundedQueue } from '@overlay/platform/async'
import {
  type Bus,
  type ChangeLog,
  changeService,
  recordingDeletions,
  type Source,
  startConsumer,
  type WaitForFollowers,
} from '@overlay/platform/change-log'
import { loadersOf, namesFrom, type Viewer } from '@overlay/platform/kind-store'
import type { Check } from '@overlay/platform/maintenance'
import type { ChangeServiceService, EntityServiceService, Methods, PkiServiceService } from '@overlay/rpc'
import type { Logger } from 'pino'
import { checksOf } from './consumers/checks.js'
import { openAhead } from './consumers/eager-steps.js'
import { identityEffects, sessionsEffects } from './consumers/identity.js'
import type { Owners } from './enroll/method.js'
import { openGrants } from './keys/enrollment-issuer.js'
import { openKeys } from './keys/keyring-cache.js'
import { startRenewing } from './keys/renewal.js'
import { entities } from './kinds/entities.js'
import { enroller } from './methods/enroll.js'
import { pkiService } from './methods/pki-service.js'
import { allKeysTold } from './store/keys.js'

export interface ServiceOptions {
  readonly changeLog: ChangeLog
  readonly bus: Bus
  readonly log: Logger
  readonly keySecret: string
  readonly address: string
  /** Where routers reach the control channel, as host:port. */
  readonly ctrlAddress: string
  /** Which names the certificates of routers may have; none: any but the own ones. */
  readonly routerNames: readonly string[]
  readonly identityMinutes: number
  readonly routerMinutes: number
  readonly enrollmentsRunning: number
  readonly enrollmentsWaiting: number
  readonly owners: Owners
  readonly viewers: { readonly identity: Viewer; readonly sessions: Viewer }
  /** After an authority is gone: its authenticators and their sessions. */
  readonly settled: WaitForFollowers
  readonly sources: { readonly identity: Source; readonly sessions: Source }
  readonly now?: () => Date
}

export interface Service extends AsyncDisposable {
  readonly entities: Methods<EntityServiceService>
  readonly changes: Methods<ChangeServiceService>
  readonly pki: Methods<PkiServiceService>
  readonly checks: readonly Check[]
}

/** All of the service but its connections. It serves before it has loaded from others. */
export async function openService(options: ServiceOptions): Promise<Service> {
  const { changeLog, bus, log, keySecret, owners, sources, now = () => new Date() } = options
  const keys = await openKeys(changeLog, keySecret, bus, log)
  const { keyring } = keys
  await keyring() // a secret that does not fit, or keys that are missing, stop the start

  const grants = openGrants({ ...options, now, keyring })
  const ahead = { granted: openAhead(), ended: openAhead() }
  const names = namesFrom(options.viewers)
  const followed = {
    identity: startConsumer(
      changeLog,
      sources.identity,
      recordingDeletions('identity', ['identities'], identityEffects(grants, names, ahead)),
      log,
    ),
    sessions: startConsumer(changeLog, sources.sessions, sessionsEffects(grants, names), log),
  }
  const renewing = startRenewing(options)
  const creating = { changeLog, grants, names, now }
  const queued = boundedQueue({
    name: 'signing',
    running: options.enrollmentsRunning,
    waiting: options.enrollmentsWaiting,
  })
  const routerNaming = {
    addresses: [options.address, options.ctrlAddress],
    patterns: options.routerNames,
    names: creating.names,
    log,
  }
  const enroll = enroller({
    changeLog,
    owners,
    followed,
    ended: ahead.ended,
    routerNaming,
    keyring,
    queued,
    now,
  })
  return {
    entities: entities(creating, options.settled),
    changes: changeService(
      changeLog,
      {
        ...loadersOf(changeLog.db, [{ entity: enrollment }, { entity: ca }]),
        keys: () => allKeysTold(changeLog.db),
      },
      followed,
    ),
    checks: checksOf({ changeLog, names: creating.names, grants, sources, followed, log }),
    pki: pkiService({
      ...creating,
      keyring,
      queued,
      identityFollowed: followed.identity,
      granted: ahead.granted,
      enroll,
    }),

    async [Symbol.asyncDispose]() {
      await renewing[Symbol.asyncDispose]()
      await followed.sessions[Symbol.asyncDispose]()
      await followed.identity[Symbol.asyncDispose]()
      await keys[Symbol.asyncDispose]()
    },
  }
}
