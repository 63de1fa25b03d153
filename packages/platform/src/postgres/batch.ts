import { isAway } from './database-failure.js'

interface Waiting<E, R> {
  readonly entry: E
  resolve(result: R): void
  reject(err: unknown): void
}

/**
 * Gathers what arrives while a call is under way and gives it to `run` together, at most `limit` at once; the
 * results come in the order of the entries. There is no timer: a lone entry waits for nothing. A batch that fails
 * is repeated entry by entry, so that a bad one fails nobody else, unless no entry is to blame: while the database is
 * away or late nobody waits for one failure after the other. `run` must not leave half of a failed batch.
 */
export function batch<E, R>(
  run: (entries: readonly E[]) => Promise<readonly R[]>,
  limit = 200,
): (entry: E) => Promise<R> {
  let waiting: Waiting<E, R>[] = []
  let busy = false

  async function settle(batch: readonly Waiting<E, R>[]): Promise<void> {
    const results = await run(batch.map(({ entry }) => entry))
    if (results.length !== batch.length)
      throw new Error(`${results.length} results for ${batch.length} combined entries`)
    for (const [i, { resolve }] of batch.entries()) resolve(results[i] as R)
  }

  async function next(): Promise<void> {
    const batch = waiting.slice(0, limit)
    waiting = waiting.slice(limit)
    try {
      await settle(batch)
    } catch (err) {
      if (batch.length === 1 || isAway(err)) for (const { reject } of batch) reject(err)
      else for (const one of batch) await settle([one]).catch(one.reject)
    }
    if (waiting.length > 0) setImmediate(next)
    else busy = false
  }

  return (entry) =>
    new Promise((resolve, reject) => {
      waiting.push({ entry, resolve, reject })
      if (busy) return
      busy = true
      setImmediate(next)
    })
}
