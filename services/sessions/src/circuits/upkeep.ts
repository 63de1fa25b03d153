import { runPeriodically } from '@overlay/platform/async'
import { isAway } from '@overlay/platform/postgres'
import { idsLeftMoving } from '../store/move-circuits.js'
import { pruneUnroutes } from '../store/unroute.js'
import { endRouters } from '../store/verify-circuits.js'
import type { Circuits } from './circuits.js'
import type { CircuitDeps } from './deps.js'
import type { MoveCircuits } from './move-circuits.js'
import { type VerifyDeps, verifyCircuits } from './verify-circuits.js'

export type UpkeepDeps = VerifyDeps &
  Pick<CircuitDeps, 'channels'> &
  Pick<Circuits, 'leaveRouter'> & { readonly move: MoveCircuits; readonly now?: () => number }

const EVERY_MS = 15_000
/** Routers connect again within seconds, or within a minute when all connect at once. Their circuits live meanwhile. */
export const OFFLINE_MS = 60_000
/** A connection of this age has carried what was sent to it. */
const RECEIVED_SECONDS = 60
/** A router that was offline for longer is taken to have restarted. */
const KEPT_SECONDS = 30 * 24 * 3600

/** What replicas do for all circuits, whichever of them has set these up: verify them, and complete what was left. */
export function circuitUpkeep(deps: UpkeepDeps) {
  const { db, channels, presence, leaveRouter, move, now = Date.now } = deps
  const offlineSince = new Map<string, number>()

  async function leaveOffline(): Promise<void> {
    const offline = (await endRouters(db)).filter((id) => !presence.isOnline(id))
    const still = new Set(offline)
    for (const id of offlineSince.keys()) if (!still.has(id)) offlineSince.delete(id)
    for (const id of offline) {
      const since = offlineSince.get(id)
      if (since === undefined) offlineSince.set(id, now())
      else if (now() - since >= OFFLINE_MS) await leaveRouter(id)
    }
  }

  async function prune(): Promise<void> {
    const before = now() - RECEIVED_SECONDS * 1000
    const settled = [...channels.all()].filter(({ connectedAt }) => connectedAt.getTime() < before)
    const ids = settled.map(({ routerId }) => routerId)
    await pruneUnroutes(db, ids, RECEIVED_SECONDS, KEPT_SECONDS)
  }

  return async (): Promise<void> => {
    await move(await idsLeftMoving(db))
    await leaveOffline()
    await verifyCircuits(deps)
    await prune()
  }
}

/** Runs the upkeep periodically. */
export function startUpkeep(deps: UpkeepDeps): AsyncDisposable {
  const upkeep = circuitUpkeep(deps)
  return runPeriodically(EVERY_MS, async () => {
    try {
      await upkeep()
    } catch (err) {
      if (isAway(err)) deps.log.debug({ err }, 'circuits not verified')
      else deps.log.error({ err }, 'circuits not verified')
    }
  })
}
