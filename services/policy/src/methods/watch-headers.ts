import { setTimeout as delay } from 'node:timers/promises'
import { openAlarm } from '@overlay/process/async'
import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { HEADERS_GATHER_MS, MOST_NAMED_HEADERS } from '../limits.js'
import type { MethodDeps } from './method-deps.js'

/** Between two messages without changes. A follower is fresh for 2 s, and memory here may be a second old. */
const HEARTBEAT_MS = 500
const MOST_AGE_MS = 2 ** 31

/** Streams the identities whose headers, or grants, have changed. Each message reports how old memory is. */
export const watchHeaders = ({ engine }: MethodDeps): Methods<PolicyServiceService>['watchHeaders'] =>
  async function* ({ grants }, { signal }) {
    const changed = new Set<string>()
    let all = false
    const moved = openAlarm()
    const listen = grants ? engine.onGrantChange : engine.onChange
    using _listening = listen((ids) => {
      if (ids === 'all') all = true
      else for (const id of ids) changed.add(id)
      if (changed.size > MOST_NAMED_HEADERS) all = true
      if (all) changed.clear()
      moved.ring()
    })
    while (!signal.aborted) {
      const next = moved.sleep(signal, HEARTBEAT_MS) // what changes while the message is sent ends the pause
      if (!engine.isLoaded()) {
        await next
        continue
      }
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
      await delay(HEADERS_GATHER_MS, undefined, { signal }).catch(() => undefined)
      await next
    }
  }
