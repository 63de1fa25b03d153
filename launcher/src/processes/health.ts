import { get } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { Health } from '@overlay/process'
import { FAILED_PROBES, OPS_ANSWER_BYTES, READINESS_MS } from '../limits.js'

export interface OpsAnswer {
  readonly status: number
  readonly body: string
}

/** Asks a process at its address of health checks and metrics. Undefined: no answer in time, or one that is too large. */
export const askOps = (ops: string, path: string, timeoutMs: number): Promise<OpsAnswer | undefined> =>
  new Promise((resolve) => {
    const request = get(`http://${ops}${path}`, { agent: false }, (response) => {
      const chunks: Buffer[] = []
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > OPS_ANSWER_BYTES) request.destroy()
        chunks.push(chunk)
      })
      response.once('end', () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }),
      )
    })
    const late = setTimeout(() => request.destroy(), timeoutMs)
    request
      .on('error', () => undefined) // 'close' follows
      .on('close', () => {
        clearTimeout(late)
        resolve(undefined)
      })
  })

/** The status of a response of a process's health address; undefined if no response comes in time. */
export const probeHealth = async (
  ops: string,
  path: 'live' | 'ready',
  timeoutMs: number,
): Promise<number | undefined> => (await askOps(ops, `/healthz/${path}`, timeoutMs))?.status

export async function readinessOf(ops: string): Promise<Health> {
  const answer = await askOps(ops, '/healthz/ready', READINESS_MS)
  return (answer && healthIn(answer.body)) ?? { ready: false, checks: { process: 'does not answer' } }
}

/** Whether a process is ready and receives the changes of the components that it follows: a gateway is ready without them. */
export const isHealthy = ({ ready, checks }: Health): boolean =>
  ready && !Object.values(checks).includes('silent')

/** Undefined: the answer of another program, which has taken the port of a process that ended. */
export function healthIn(body: string): Health | undefined {
  try {
    const health = JSON.parse(body)
    return typeof health?.checks === 'object' ? health : undefined
  } catch {
    return undefined
  }
}

/** What a process lacks, as text. */
export const problemsIn = ({ checks }: Health): string[] =>
  Object.entries(checks).flatMap(([name, state]) => (state === 'ok' ? [] : `${name} ${state}`))

/**
 * Resolves when a process stops answering for `silenceMs`. A process that has not answered yet may be waiting for its
 * database.
 */
export async function untilUnresponsive(ops: string, silenceMs: number, signal: AbortSignal): Promise<void> {
  const everyMs = silenceMs / FAILED_PROBES
  for (let missed: number | undefined; missed !== FAILED_PROBES; ) {
    const next = pause(everyMs, undefined, { signal })
    next.catch(() => undefined) // awaited below, after the probe
    if ((await probeHealth(ops, 'live', everyMs)) !== undefined) missed = 0
    else if (missed !== undefined) missed++
    await next
  }
}

/** The state of a dependency, by the processes that report it: ok only if all agree, unknown if none does. */
export function worstState(readiness: readonly Health[], name: string): string {
  const states = readiness.flatMap(({ checks }) => checks[name] ?? [])
  return states.find((state) => state !== 'ok') ?? states[0] ?? 'unknown'
}
