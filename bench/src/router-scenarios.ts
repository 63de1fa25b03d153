import { setTimeout as pause } from 'node:timers/promises'
import { clientRoot, openApi } from './api.js'
import { newCircuits } from './circuits.js'
import { counting, type Load } from './load.js'
import type { Bench, Scenario } from './scenario.js'
import { sessionCreate } from './scenarios.js'
import { allAttribute } from './topology.js'

const loginsOfRound = 30
const BETWEEN_LOGINS_MS = 100
const changesOfRound = 5

/** What connected routers cost. */
export const routerScenarios: readonly Scenario[] = [
  { name: 'routers-idle', prepare: () => idle },
  { name: 'api-session-push', prepare: logins },
  { name: 'model-change', prepare: modelChanges },
  { name: 'circuit-create', prepare: newCircuits() },
  sessionCreate,
]

/** Nothing: each second counts as one request. */
const idle: Load = {
  async run({ seconds }) {
    const { latency, failures, answered } = counting()
    for (let second = 0; second < seconds * 4; second++) {
      await pause(1000)
      answered(200, 1000)
    }
    return { latency, failures }
  },
}

/**
 * Logins by certificate, one after the other: routers get no others. The latencies are from the answer until all routers
 * have the API session.
 */
function logins({ url, fleet, seeded: { certificates } }: Bench): Load {
  return {
    async run() {
      const { latency, failures, answered } = counting()
      for (const certificate of certificates.slice(0, loginsOfRound)) {
        using api = openApi(url, clientRoot, 1, certificate)
        const { token } = await api.request<{ token: string }>('POST', '/authenticate?method=cert', {})
        const answeredAt = performance.now()
        const pushedAt = await fleet().untilPushed(token)
        answered(200, Math.max(0, pushedAt - answeredAt))
        await pause(BETWEEN_LOGINS_MS)
      }
      return { latency, failures }
    },
  }
}

/**
 * A policy for all identities comes and goes. The latencies are from the request until all routers have the change: use
 * `--line 2.0`. Without a data model there is nothing to measure.
 */
function modelChanges({ fleet, admin }: Bench): Load {
  return {
    async run() {
      const { latency, failures, answered } = counting()
      if (!fleet().hasModel) return { latency, failures }
      for (let at = 0; at < changesOfRound; at++) {
        const all = [`#${allAttribute}`]
        const startedAt = performance.now()
        const created = fleet().untilChanged()
        const { id } = await admin.request<{ id: string }>('POST', '/service-policies', {
          name: `bench-model-${Date.now().toString(36)}`,
          type: 'Dial',
          semantic: 'AnyOf',
          identityRoles: all,
          serviceRoles: all,
        })
        answered(201, (await created) - startedAt)
        const deletedAt = performance.now()
        const deleted = fleet().untilChanged()
        await admin.request('DELETE', `/service-policies/${id}`)
        answered(200, (await deleted) - deletedAt)
      }
      return { latency, failures }
    },
  }
}
