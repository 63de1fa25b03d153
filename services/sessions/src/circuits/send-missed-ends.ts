import { batch } from '@overlay/store/postgres'
import type { RouterChannel } from '../channel/router-channel.js'
import { UNROUTES } from '../limits.js'
import { type UnroutePage, unroutesOf } from '../store/unroute.js'
import type { CircuitDeps } from './circuit-deps.js'
import { sendUnroute } from './send-route.js'

/** Connections that were sent all ends which their routers had missed, and when upkeep has first seen each. */
export type Informed = WeakMap<RouterChannel, number | undefined>

/** Sends routers that connect the circuits that have ended meanwhile: they may still forward them. */
export function openMissedEnds(
  { db, messages }: Pick<CircuitDeps, 'db' | 'messages'>,
  informed: Informed,
): (router: RouterChannel) => Promise<void> {
  const pages = batch((all: readonly UnroutePage[]) => unroutesOf(db, all, UNROUTES), { limit: 20 })

  return async (router) => {
    const { routerId, channel } = router
    for (let after = ''; !channel.closed.aborted; ) {
      const ids = await pages({ routerId, after })
      for (const id of ids) sendUnroute(messages, id, [routerId], true)
      if (ids.length < UNROUTES) return void informed.set(router, undefined)
      await channel.drained()
      after = ids.at(-1) ?? after
    }
  }
}
