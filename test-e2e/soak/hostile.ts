import { setTimeout as pause } from 'node:timers/promises'
import { type Administrator, openAdministrator } from './administrator.js'
import { clientApi, isUnknown, openCaller, type Run } from './caller.js'
import { type HostileNetwork, startHostileRouter } from './hostile-router.js'
import type { Random } from './random.js'
import { rules } from './report.js'
import type { Terminator } from './router-state.js'
import { type Circuit, type Link, type Router, type RouterState, routerChanges } from './router-state.js'

/** A hostile router, and the state of the routers that it must not change. */
export interface Hostile extends AsyncDisposable {
  /** Compares the state with that before the first message, and names what there is now in further messages. */
  check(withinMs: number): Promise<void>
}

const FABRIC = '/fabric/v1'
const POLL_MS = 300
const ANSWER_MS = 60_000

export async function openHostile(
  run: Run,
  admin: Administrator,
  network: HostileNetwork,
  random: Random,
): Promise<Hostile> {
  const fabric = await openAdministrator(run, FABRIC)
  const stateNow = async (): Promise<RouterState> => ({
    routers: (await admin.all<Router>(0, 'edge-routers')).rows,
    terminators: (await admin.all<Terminator>(0, 'terminators')).rows,
    links: (await fabric.all<Link>(0, 'links')).rows,
    circuits: (await fabric.all<Circuit>(0, 'circuits')).rows,
  })
  const before = await stateNow()
  const { report } = run
  const client = openCaller(run, clientApi, 0)
  async function isAccepted(token: string): Promise<boolean> {
    client.use(token)
    const deadline = performance.now() + ANSWER_MS
    let reply = await client.call('GET', '/current-api-session')
    while (isUnknown(reply) && performance.now() < deadline) {
      await pause(POLL_MS)
      reply = await client.call('GET', '/current-api-session')
    }
    return reply.status === 200
  }
  const router = await startHostileRouter(network, { report, random, isAccepted })

  async function nameAll(state: RouterState): Promise<void> {
    const idsOf = (rows: readonly { readonly id: string }[]): string[] => rows.map(({ id }) => id)
    router.name({
      terminators: idsOf(state.terminators),
      links: idsOf(state.links),
      circuits: idsOf(state.circuits),
      routers: idsOf(before.routers),
      services: idsOf((await admin.all<{ id: string }>(0, 'services')).rows),
      sessions: idsOf((await admin.all<{ id: string }>(0, 'sessions')).rows).slice(0, 20),
    })
  }

  await nameAll(before)
  return {
    async check(withinMs) {
      const deadline = performance.now() + withinMs
      for (;;) {
        const state = await stateNow()
        const changes = routerChanges(before, state, router.id)
        if (changes.length === 0) run.report.passed(rules.untouched)
        else if (performance.now() < deadline) {
          await pause(POLL_MS)
          continue
        }
        for (const change of changes) run.report.violated(rules.untouched, { change })
        return nameAll(state)
      }
    },
    async [Symbol.asyncDispose]() {
      await router[Symbol.asyncDispose]()
      client[Symbol.dispose]()
      fabric[Symbol.dispose]()
    },
  }
}
