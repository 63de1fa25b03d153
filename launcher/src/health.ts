import { get } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

/** The status of a response of a process's health address; undefined if no response comes in time. */
export const probeHealth = (
  ops: string,
  path: 'live' | 'ready',
  timeoutMs: number,
): Promise<number | undefined> =>
  new Promise((resolve) => {
    const request = get(`http://${ops}/healthz/${path}`, { agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode)
      clearTimeout(late)
    })
    const late = setTimeout(() => request.destroy(), timeoutMs)
    request.on('error', () => resolve(undefined)).on('close', () => clearTimeout(late))
  })

/** A single failed probe may come from a delay of the launcher itself, or from a suspended machine. */
const FAILED_PROBES = 6

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
