import { setTimeout as pause } from 'node:timers/promises'
import type { Administrator } from './administrator.js'
import { isUnknown, nextGateway, type Run } from './caller.js'
import type { Endpoint } from './endpoint.js'
import { type Policy, sameSet } from './model.js'
import type { Random } from './random.js'
import { rules } from './report.js'

const POLL_MS = 15

export interface Checks {
  readBack(path: string, expected: Readonly<Record<string, readonly string[]>>): Promise<void>
  checkGone(kind: string, id: string): Promise<void>
  checkListed(kind: string, id: string, count: 0 | 1): Promise<void>
  /** The token is refused immediately by the gateway that ended it, and soon by the others. */
  checkRefused(endpoint: Endpoint, gateway: number): Promise<void>
  /** No session of this identity, service and type is left soon after `since`. */
  checkEnded(identityId: string, serviceId: string, type: Policy['type'], since: number): Promise<void>
}

/** Checks of single rows by an administrator through any gateway. */
export function openChecks(run: Run, admin: Administrator, random: Random): Checks {
  const { calm, report } = run
  const anyGateway = (): number => random.int(run.gateways.length)
  const other = (gateway: number): number => nextGateway(run, gateway)

  async function readBack(
    path: string,
    expected: Readonly<Record<string, readonly string[]>>,
  ): Promise<void> {
    const gateway = anyGateway()
    const reply = await admin.insist(gateway, 'GET', path)
    if (isUnknown(reply)) return report.note('read without an answer')
    const row = (reply.data ?? {}) as Readonly<Record<string, readonly string[] | null>>
    const wrong = Object.entries(expected).filter(([member, value]) => !sameSet(value, row[member]))
    if (reply.status === 200 && wrong.length === 0) report.passed(rules.readBack)
    else report.violated(rules.readBack, { path, expected, status: reply.status, row, gateway })
  }

  async function checkGone(kind: string, id: string): Promise<void> {
    const gateway = anyGateway()
    const reply = await admin.insist(gateway, 'GET', `/${kind}/${id}`)
    if (reply.status === 404) report.passed(rules.gone)
    else if (!isUnknown(reply)) report.violated(rules.gone, { kind, id, status: reply.status, gateway })
    await checkListed(kind, id, 0)
  }

  async function checkListed(kind: string, id: string, count: 0 | 1): Promise<void> {
    const gateway = anyGateway()
    const filter = encodeURIComponent(`id="${id}"`)
    const reply = await admin.insist(gateway, 'GET', `/${kind}?filter=${filter}`)
    if (isUnknown(reply)) return
    const rows = (reply.data ?? []) as readonly unknown[]
    if (rows.length === count && reply.total === count) report.passed(rules.listed)
    else report.violated(rules.listed, { kind, id, count, rows: rows.length, total: reply.total, gateway })
  }

  async function checkRefused(endpoint: Endpoint, gateway: number): Promise<void> {
    const { apiSessionId } = endpoint
    const since = performance.now()
    const same = await endpoint.call(gateway, 'GET', '/current-api-session')
    if (same.status === 200) report.violated(rules.refused, { apiSessionId, gateway, at: 'the same gateway' })
    for (;;) {
      const sentAt = performance.now()
      const reply = await endpoint.call(other(gateway), 'GET', '/current-api-session')
      if (reply.status === 401) {
        report.passed(rules.refused)
        report.observe(`token refused${calm.isCalm() ? '' : ', faults'}`, performance.now() - since)
        break
      }
      if (reply.status === 200 && sentAt - since > calm.tokenMs()) {
        report.violated(rules.refused, {
          apiSessionId,
          gateway: other(gateway),
          ms: Math.round(sentAt - since),
        })
        break
      }
      if (calm.isOverdue(since) && reply.status !== 200) break
      await pause(POLL_MS)
    }
  }

  async function checkEnded(
    identityId: string,
    serviceId: string,
    type: Policy['type'],
    since: number,
  ): Promise<void> {
    const filter = encodeURIComponent(`service="${serviceId}"`)
    for (;;) {
      const sentAt = performance.now()
      const reply = await admin.call(anyGateway(), 'GET', `/sessions?limit=500&filter=${filter}`)
      const rows = (reply.data ?? []) as readonly { identityId: string; type: string }[]
      const left = rows.filter((row) => row.identityId === identityId && row.type === type).length
      if (reply.status === 200 && left === 0) {
        report.passed(rules.ended)
        return report.observe(`session ended${calm.isCalm() ? '' : ', faults'}`, performance.now() - since)
      }
      if (calm.isOverdue(since)) {
        if (reply.status === 200 && calm.isOverdue(since + performance.now() - sentAt))
          report.violated(rules.ended, { identityId, serviceId, type, left, ms: Math.round(sentAt - since) })
        return
      }
      await pause(POLL_MS)
    }
  }

  return { readBack, checkGone, checkListed, checkRefused, checkEnded }
}
