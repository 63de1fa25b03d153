import { setTimeout as delay } from 'node:timers/promises'
import { openAlarm } from '@overlay/process/async'
import type { Methods, PolicyServiceService } from '@overlay/rpc'
import type { Deps } from './method-deps.js'

const SIGN_MS = 1000
const GATHER_MS = 20 // changes that share a message; the first is sent at once
const MOST_NAMED = 10_000
const MOST_AGE_MS = 2 ** 31

/**
 * Streams the identities whose headers, or grants, have changed. Where signs of life are to come each second, none is
 * sent while memory is not fresh. Where they are to be rare, they tell how old memory is, and policy asks none of its
 * owners because of them.
 */
export const watchHeaders = ({ engine }: Deps): Methods<PolicyServiceService>['watchHeaders'] =>
  async function* ({ grants, signMs }, context) {
    const { signal } = context
    const changed = new Set<string>()
    let all = false
    const moved = openAlarm()
    const listen = grants ? engine.onGrantChange : engine.onChange
    using _listening = listen((ids) => {
      if (ids === 'all') all = true
      else for (const id of ids) changed.add(id)
      if (changed.size > MOST_NAMED) all = true
      if (all) changed.clear()
      moved.ring()
    })
    const isRare = signMs > SIGN_MS
    const isFresh = async (): Promise<boolean> => {
      if (!engine.isFresh()) await engine.ensureFresh(context).catch(() => undefined) // asked again after a second
      return engine.isFresh()
    }

    while (!signal.aborted) {
      const isReady = isRare || (await isFresh())
      const next = moved.sleep(signal, isRare ? signMs : SIGN_MS) // what changes while the message is sent ends the pause
      if (isReady) {
        const ageMs = Math.min(Math.round(engine.ageMs()), MOST_AGE_MS)
        const message = {
          positions: engine.positions(),
          identityIds: [...changed],
          all,
          grants,
          ageMs,
          routers: true,
        }
        changed.clear()
        all = false
        yield message
        await delay(GATHER_MS, undefined, { signal }).catch(() => undefined)
      }
      await next
    }
  }
