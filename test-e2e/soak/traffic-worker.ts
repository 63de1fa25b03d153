import { randomBytes } from 'node:crypto'
import { exchange, openSession, type RunningNetwork, trafficOf, until } from '../traffic.js'
import type { Run } from './caller.js'
import { rules } from './report.js'

/** Routers of 1.1 and 2.0, an application that hosts a service behind the one, and one that uses it through the other. */
export interface TrafficWorker extends AsyncDisposable {
  step(): Promise<void>
}

const BYTES = 4096

export async function openTrafficWorker(
  { report, calm, losses }: Run,
  network: RunningNetwork,
): Promise<TrafficWorker> {
  const started: AsyncDisposable[] = []
  const traffic = trafficOf(network, (one) => {
    started.push(one)
    return one
  })
  const near = await traffic.router('soak-near', { hasLinks: true, line: '2.0' })
  const far = await traffic.router('soak-far', { hasLinks: true })
  const { serviceId } = await traffic.hosted('soak-echo', far)
  // the terminator is known to all replicas within two seconds
  const {
    member,
    sdk,
    session,
    connection: first,
  } = await until(() => traffic.dialed(serviceId, near).catch(() => undefined))

  let reported = 0
  function checkModel(): void {
    const violations = near.violations()
    for (const violation of violations.slice(reported)) report.violated(rules.follows, { violation })
    if (violations.length === reported && near.model.index > 0n) report.passed(rules.follows)
    reported = violations.length
  }
  let standing = first
  let mayBeLost = (): boolean => false
  async function echoed(on: typeof first): Promise<void> {
    if (on.writableEnded || on.destroyed) throw new Error('the connection has ended')
    const sent = randomBytes(BYTES)
    if (!(await exchange(on, sent)).equals(sent)) throw new Error('other bytes came back')
  }
  return {
    async step() {
      try {
        await echoed(standing)
        report.passed(rules.flows)
      } catch (err) {
        if (mayBeLost()) report.note('connection of a lost circuit')
        else report.violated(rules.flows, { error: String(err), reason: await standing.ended })
        standing.destroy()
        mayBeLost = losses.watch()
        standing = await until(() => sdk.dial(session.token).catch(() => undefined))
      }
      const wasCalm = calm.isCalm()
      try {
        const { token } = await openSession(member, serviceId, 'Dial')
        const fresh = await sdk.dial(token)
        await echoed(fresh)
        fresh.destroy()
        report.passed(rules.dialed)
      } catch (err) {
        report.note('failed dial of traffic')
        if (wasCalm && calm.isCalm()) report.violated(rules.dialed, { error: String(err), by: 'traffic' })
      }
      checkModel()
    },
    async [Symbol.asyncDispose]() {
      for (const one of started.reverse()) await one[Symbol.asyncDispose]()
    },
  }
}
