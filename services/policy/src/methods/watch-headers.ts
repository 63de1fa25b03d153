import { openAlarm } from '@overlay/platform/async'
import type { Methods, PolicyServiceService } from '@overlay/rpc'
import type { Deps } from './deps.js'

const SIGN_OF_LIFE_MS = 1000
const MOST_NAMED = 10_000

/** Streams the identities whose headers, or grants, have changed. Sends nothing while memory is not fresh. */
export const watchHeaders = ({ engine }: Deps): Methods<PolicyServiceService>['watchHeaders'] =>
  async function* ({ grants }, { signal }) {
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

    while (!signal.aborted) {
      const next = moved.sleep(signal, SIGN_OF_LIFE_MS) // from before the message on: what changes while it is sent ends the pause
      if (engine.isFresh()) {
        const ageMs = Math.round(engine.ageMs())
        const message = { positions: engine.positions(), identityIds: [...changed], all, grants, ageMs }
        changed.clear()
        all = false
        yield message
      }
      await next
    }
  }
