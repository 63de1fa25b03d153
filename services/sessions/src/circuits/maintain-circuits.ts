import { runPeriodically } from '@overlay/process/async'
import { isAway } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import {
  FAILED_MS,
  MAINTAIN_MS,
  OFFLINE_MS,
  RECEIVED_SECONDS,
  TIDY_MS,
  UNROUTES_KEPT_SECONDS,
} from '../limits.js'
import { ended } from '../store/end-circuits.js'
import { idsLeftMoving, idsOverLink } from '../store/move-circuits.js'
import { forgetEnded } from '../store/terminator.js'
import { pruneUnroutes } from '../store/unroute.js'
import { endRouters } from '../store/verify-circuits.js'
import type { CircuitDeps } from './circuit-deps.js'
import type { Circuits } from './circuits.js'
import type { MoveCircuits } from './move-circuits.js'
import type { Informed } from './send-missed-ends.js'
import { type VerifyDeps, verifyCircuits } from './verify-circuits.js'

export type UpkeepDeps = VerifyDeps &
  Pick<CircuitDeps, 'channels' | 'log'> &
  Pick<Circuits, 'leaveRouter'> & {
    readonly move: MoveCircuits
    readonly failedLinks: FailedLinks
    readonly informed: Informed
  }

/** Links that have failed, and when upkeep has first seen each. */
export type FailedLinks = Map<string, number | undefined>

/** Periodic work of each replica, for the circuits of all: `now` in milliseconds, of a clock that does not jump. */
export type Upkeep = (now: number) => Promise<void>

/** Verifies circuits, completes moves of replicas that have died, and ends circuits of routers that stay offline. */
export function openCircuitUpkeep(deps: UpkeepDeps): Upkeep {
  const { db, channels, presence, ending, leaveRouter, move, failedLinks, informed, log } = deps
  const offlineSince = new Map<string, number>()
  let tidiedAt = Number.NEGATIVE_INFINITY

  async function leaveOffline(now: number): Promise<void> {
    const offline = (await endRouters(db)).filter((id) => !presence.isOnline(id))
    const still = new Set(offline)
    for (const id of offlineSince.keys()) if (!still.has(id)) offlineSince.delete(id)
    for (const id of offline) {
      const since = offlineSince.get(id)
      if (since === undefined) offlineSince.set(id, now)
      else if (now - since >= OFFLINE_MS) await leaveRouter(id)
    }
  }

  async function leaveFailed(now: number): Promise<void> {
    for (const [linkId, since] of failedLinks) {
      if (since === undefined) failedLinks.set(linkId, now)
      if (since === undefined || now - since < FAILED_MS) continue
      try {
        await move(await idsOverLink(db, linkId))
        await ending.end(ended.byId(await idsOverLink(db, linkId)), 'router')
      } catch (err) {
        if (isAway(err)) throw err
        log.error({ err, linkId }, 'circuits have not left a failed link') // the others must
      }
      if (failedLinks.get(linkId) === since) failedLinks.delete(linkId) // unless it has failed again meanwhile
    }
  }

  async function prune(now: number): Promise<void> {
    const settled = [...channels.all()].filter((router) => {
      if (!informed.has(router)) return false
      const since = informed.get(router) ?? now
      informed.set(router, since)
      return now - since >= RECEIVED_SECONDS * 1000
    })
    const ids = settled.map(({ routerId }) => routerId)
    while (await pruneUnroutes(db, ids, RECEIVED_SECONDS, UNROUTES_KEPT_SECONDS));
  }

  return async (now) => {
    await move(await idsLeftMoving(db))
    await leaveOffline(now)
    await leaveFailed(now)
    await verifyCircuits(deps)
    if (now - tidiedAt < TIDY_MS) return
    tidiedAt = now
    await ending.end(ended.ofNoSession, 'session')
    await ending.end(ended.ofEndedTerminators, 'terminator')
    await forgetEnded(db)
    await prune(now)
  }
}

export const runUpkeep = (upkeep: Upkeep, log: Logger): AsyncDisposable =>
  runPeriodically(MAINTAIN_MS, async () => {
    try {
      await upkeep(performance.now())
    } catch (err) {
      if (isAway(err)) log.debug({ err }, 'circuits not verified')
      else log.error({ err }, 'circuits not verified')
    }
  })
