import { type Client, openClient } from '../client.js'
import type { Calm } from './calm.js'
import type { Losses } from './losses.js'
import { type Report, rules } from './report.js'

/** The product under test. */
export interface Target {
  readonly gateways: readonly string[]
  readonly caPem: string
  readonly calm: Calm
  readonly losses: Losses
  readonly report: Report
}

/** The shared data of a run. */
export interface Run extends Target {
  /** Id of the config type `host.v1`. */
  readonly hostConfigType: string
}

export interface Reply {
  /** 0: no answer. */
  readonly status: number
  readonly data: unknown
  readonly total: number | undefined
  readonly error: unknown
}

/** A client of one gateway with its own token. */
export interface Caller extends Disposable {
  readonly gateway: number
  call(method: string, path: string, body?: unknown): Promise<Reply>
  use(token: string): void
}

const SILENCE_MS = 30_000

export const clientApi = '/edge/client/v1'
export const managementApi = '/edge/management/v1'

export function openCaller({ gateways, caPem, calm, report }: Target, api: string, gateway: number): Caller {
  const client: Client = openClient({ addresses: [gateways[gateway] ?? 'localhost'], caPem }, api)
  return {
    gateway,
    use: client.use,
    async call(method, path, body) {
      report.operation()
      const startedAt = performance.now()
      const wasCalm = calm.isCalm()
      const reply = await answerOf(client, method, path, body)
      const facts = { method, path, body, status: reply.status, error: reply.error, gateway }
      const { code } = (reply.error ?? {}) as { readonly code?: string }
      if (isSuccess(reply)) report.passed(rules.valid)
      if (reply.status === 500 || code === 'UNHANDLED') report.violated(rules.explained, facts)
      else if (isUnknown(reply)) {
        report.note(`status ${reply.status}${wasCalm && calm.isCalm() ? ' in calm' : ''}`)
        report.log('unknown', {
          ...facts,
          ms: Math.round(performance.now() - startedAt),
          fault: calm.fault(),
        })
        if (wasCalm && calm.isCalm()) report.violated(rules.explained, facts)
      } else report.passed(rules.explained)
      return reply
    },
    [Symbol.dispose]: () => client[Symbol.dispose](),
  }
}

async function answerOf(client: Client, method: string, path: string, body: unknown): Promise<Reply> {
  const silence = AbortSignal.timeout(SILENCE_MS)
  const silent = new Promise<never>((_, reject) => {
    silence.addEventListener('abort', () => reject(new Error('no answer')))
  })
  try {
    const { status, body: answer } = await Promise.race([client.call(method, path, body), silent])
    const { pagination } = answer.meta as { pagination?: { totalCount: number } }
    return { status, data: answer.data, total: pagination?.totalCount, error: answer.error }
  } catch (err) {
    return { status: 0, data: undefined, total: undefined, error: (err as Error).message }
  }
}

export const isSuccess = ({ status }: Reply): boolean => status >= 200 && status < 300

/** Whether the outcome of the operation is unknown. */
export const isUnknown = ({ status }: Reply): boolean => status === 0 || status === 429 || status >= 500

/** The gateway after this one. */
export const nextGateway = ({ gateways }: Target, gateway: number): number => (gateway + 1) % gateways.length
