import { setTimeout as pause } from 'node:timers/promises'
import type { Concern } from '../channel/handlers.js'
import { CLOSING_MS } from '../limits.js'
import { ended } from '../store/end-circuits.js'
import { idsOverLink, idsOverRouter } from '../store/move-circuits.js'
import { verifyNext } from '../store/verify-circuits.js'
import type { CircuitDeps } from './circuit-deps.js'
import { circuitEvents } from './circuit-events.js'
import type { Circuits } from './circuits.js'
import { openCircuitEnding } from './end-circuits.js'
import { type FailedLinks, openCircuitUpkeep, runUpkeep, type Upkeep } from './maintain-circuits.js'
import { openCircuitMover } from './move-circuits.js'
import { openCircuitOpener } from './open-circuit.js'
import { handleCircuitReports } from './report-handlers.js'
import { handleCircuitRequests } from './request-handlers.js'
import { type Informed, openMissedEnds } from './send-missed-ends.js'

export interface CircuitsConcern extends Concern, Circuits, AsyncDisposable {
  /** Runs periodically by itself. */
  readonly upkeep: Upkeep
}

/** Sets up circuits, ends and moves them. All replicas share the rows: any of them acts on any circuit. */
export function circuitsConcern(deps: CircuitDeps): CircuitsConcern {
  const { db, directory, log } = deps
  const withEvents = { ...deps, circuitEvents: circuitEvents(deps.events) }
  const ending = openCircuitEnding(withEvents)
  const move = openCircuitMover({ ...withEvents, ending })
  const open = openCircuitOpener(withEvents)
  const informed: Informed = new WeakMap()
  const inform = openMissedEnds(deps, informed)

  const end = async (id: string): Promise<boolean> => (await ending.end(ended.byId([id]), 'admin')).length > 0

  async function leaveRouter(routerId: string): Promise<void> {
    await ending.end(ended.atRouter(routerId), 'router')
    await move(await idsOverRouter(db, routerId))
  }

  const changes = directory.onChange((routerId, router) => {
    if (router && !router.disabled) return
    leaveRouter(routerId).catch((err: unknown) => {
      log.warn(
        { err, routerId },
        'circuits of a removed router not ended; they end when it is offline for long',
      )
    })
  })

  const failedLinks: FailedLinks = new Map()
  const upkeep = openCircuitUpkeep({ ...deps, ending, move, leaveRouter, failedLinks, informed })
  const upkeeping = runUpkeep(upkeep, log)
  return {
    handlers: [
      ...handleCircuitRequests({ ...deps, open, end }),
      ...handleCircuitReports({ ...deps, ending, move }),
    ],
    /** The router may forward circuits that have ended meanwhile. A new process of it has lost its circuits. */
    async connected(router) {
      if (!router.isReconnection) await verifyNext(db, router.routerId)
      await inform(router)
    },
    open,
    end,
    async endOfSessions(ids) {
      if (ids.length === 0) return
      await pause(CLOSING_MS)
      await ending.end(ended.ofSessions(ids), 'session')
    },
    async endOfTerminators(ids) {
      if (ids.length > 0) await ending.end(ended.ofTerminators(ids), 'terminator')
    },
    async leaveLink(linkId, hasFailed = false) {
      if (hasFailed) failedLinks.set(linkId, undefined)
      await move(await idsOverLink(db, linkId), { withoutLink: linkId })
    },
    leaveRouter,
    upkeep,
    async [Symbol.asyncDispose]() {
      changes[Symbol.dispose]()
      await upkeeping[Symbol.asyncDispose]()
    },
  }
}
