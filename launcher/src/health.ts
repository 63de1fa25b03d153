import { get } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

/** The status of an answer of a process's health address; nothing when none comes in time. */
export const askHealth = (
  ops: string,
  path: 'live' | 'ready',
  timeoutMs: number,
): Promise<number | undefined> =>
  new Promise((resolve) => {
    const request = get(`http://${ops}/healthz/${path}`, { agent: false }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
      clearTimeout(late)
    })
    const late = setTimeout(() => request.destroy(), timeoutMs)
    request.on('error', () => resolve(undefined)).on('close', () => clearTimeout(late))
  })

/** A look that fails may be the launcher's own delay, or a suspended machine. So many in a row are not. */
const LOOKS = 6

/**
 * Returns when a process that has answered before does not answer for `silenceMs`. One that has not answered yet may
 * be waiting for its database.
 */
export async function untilSilent(ops: string, silenceMs: number, signal: AbortSignal): Promise<void> {
  const everyMs = silenceMs / LOOKS
  for (let missed: number | undefined; missed !== LOOKS; ) {
    const next = pause(everyMs, undefined, { signal })
    next.catch(() => undefined) // awaited below, after the look
    if ((await askHealth(ops, 'live', everyMs)) !== undefined) missed = 0
    else if (missed !== undefined) missed++
    await next
  }
}
