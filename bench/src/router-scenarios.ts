import { setTimeout as pause } from 'node:timers/promises'
import { clientRoot, logIn, openApi } from './api.js'
import { newCircuits } from './circuits.js'
import { counting, type Load } from './load.js'
import type { Bench, Scenario } from './scenario.js'
import { sessionCreate } from './scenarios.js'
import { names, password } from './topology.js'

const loginsOfRound = 30
const BETWEEN_LOGINS_MS = 100

/** What connected routers cost. */
export const routerScenarios: readonly Scenario[] = [
  { name: 'routers-idle', prepare: () => idle },
  { name: 'api-session-push', prepare: logins },
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

/** Logins one after the other. The latencies are from the answer until all routers have the API session. */
function logins({ url, fleet, seeded: { topology } }: Bench): Load {
  return {
    async run() {
      const { latency, failures, answered } = counting()
      using api = openApi(url, clientRoot, 1)
      for (let at = 0; at < loginsOfRound; at++) {
        const token = await logIn(api, names.username(at % topology.withPassword), password)
        const answeredAt = performance.now()
        const pushedAt = await fleet().untilPushed(token)
        answered(200, Math.max(0, pushedAt - answeredAt))
        await pause(BETWEEN_LOGINS_MS)
      }
      return { latency, failures }
    },
  }
}
