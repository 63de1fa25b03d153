import { setTimeout as pause } from 'node:timers/promises'
import { type Caller, isUnknown, managementApi, openCaller, type Reply, type Target } from './caller.js'
import { rules } from './report.js'
import { administrator } from './topology.js'

/** An administrator, logged in at each gateway. */
export interface Administrator extends Disposable {
  readonly callers: readonly Caller[]
  /** Logs in again if the session has ended, which is a violation. */
  call(gateway: number, method: string, path: string, body?: unknown): Promise<Reply>
  /** Repeats until an answer comes, up to a minute. */
  insist(gateway: number, method: string, path: string, body?: unknown): Promise<Reply>
  /** All rows of a kind from one gateway. */
  all<Row>(gateway: number, kind: string, filter?: string): Promise<{ rows: Row[]; total: number }>
}

const PAGE = 500
const RETRY_MS = 60_000

/** @param api whose operations it calls */
export async function openAdministrator(target: Target, api = managementApi): Promise<Administrator> {
  const callers = target.gateways.map((_, gateway) => openCaller(target, api, gateway))
  const logIn = async (caller: Caller): Promise<void> => {
    using management = openCaller(target, managementApi, caller.gateway)
    for (const startedAt = performance.now(); ; await pause(300)) {
      const reply = await management.call('POST', '/authenticate?method=password', administrator)
      if (reply.status === 200) return caller.use((reply.data as { token: string }).token)
      if (!isUnknown(reply) || performance.now() - startedAt > RETRY_MS)
        throw new Error(`login of the administrator: ${reply.status} ${JSON.stringify(reply.error)}`)
    }
  }
  for (const caller of callers) await logIn(caller)

  const call = async (gateway: number, method: string, path: string, body?: unknown): Promise<Reply> => {
    const caller = callers[gateway]
    if (!caller) throw new Error(`no gateway ${gateway}`)
    const reply = await caller.call(method, path, body)
    if (reply.status !== 401) return reply
    target.report.violated(rules.valid, {
      method,
      path,
      status: 401,
      gateway,
    })
    await logIn(caller)
    return caller.call(method, path, body)
  }
  const insist = async (gateway: number, method: string, path: string, body?: unknown): Promise<Reply> => {
    for (const startedAt = performance.now(); ; await pause(300)) {
      const reply = await call(gateway, method, path, body)
      if (!isUnknown(reply) || performance.now() - startedAt > RETRY_MS) return reply
    }
  }
  return {
    callers,
    call,
    insist,
    async all<Row>(gateway: number, kind: string, filter?: string) {
      const rows: Row[] = []
      const query = filter ? `&filter=${encodeURIComponent(filter)}` : ''
      for (;;) {
        const path = `/${kind}?limit=${PAGE}&offset=${rows.length}${query}`
        const reply = await insist(gateway, 'GET', path)
        if (reply.status !== 200)
          throw new Error(`GET ${path}: ${reply.status} ${JSON.stringify(reply.error)}`)
        const page = reply.data as Row[]
        rows.push(...page)
        if (page.length < PAGE) return { rows, total: reply.total ?? -1 }
      }
    },
    [Symbol.dispose]() {
      for (const caller of callers) caller[Symbol.dispose]()
    },
  }
}
