import { type ActiveSpan, Fault, type SpanFacts, tracing } from '@overlay/rpc'
import { isAway } from './database-failure.js'

interface Waiting<E, R> {
  readonly entry: E
  readonly span: ActiveSpan | undefined
  resolve(result: R): void
  reject(err: unknown): void
}

interface Options<E> {
  /** Of the entries of one call. */
  readonly limit?: number
  /** Of the sizes of these entries. A larger entry goes alone. */
  readonly sizeLimit?: number
  /** Default: 1. */
  readonly sizeOf?: (entry: E) => number
  /** An entry that still waits at its deadline is refused with TIMEOUT when its turn comes. */
  readonly deadlineOf?: (entry: E) => Date | undefined
}

/**
 * Gathers entries while a call runs and passes them to the next one, at most `limit` at once. Results come in the order
 * of the entries. There is no timer: a single entry does not wait. A batch that fails is repeated entry by entry, so that
 * a bad entry fails alone; not while the database is unavailable or slow. `run` must undo a batch that fails.
 */
export function batch<E, R>(
  run: (entries: readonly E[]) => Promise<readonly R[]>,
  options: Options<E> = {},
): (entry: E) => Promise<R> {
  const { limit = 200, sizeLimit = Number.POSITIVE_INFINITY } = options
  const { sizeOf = () => 1, deadlineOf = () => undefined } = options
  let waiting: Waiting<E, R>[] = []
  let busy = false

  function isInTime({ entry, reject }: Waiting<E, R>): boolean {
    const deadline = deadlineOf(entry)
    if (deadline === undefined || deadline.getTime() > Date.now()) return true
    reject(new Fault('TIMEOUT'))
    return false
  }

  function countOfNext(): number {
    const most = Math.min(limit, waiting.length)
    let size = 0
    for (let count = 0; count < most; count++) {
      size += sizeOf((waiting[count] as Waiting<E, R>).entry)
      if (size > sizeLimit && count > 0) return count
    }
    return most
  }

  async function settle(batch: readonly Waiting<E, R>[]): Promise<void> {
    const work = () => run(batch.map(({ entry }) => entry))
    const spans = batch.map(({ span }) => span)
    const results = tracing ? await tracing.shared(facts, spans, work) : await work()
    if (results.length !== batch.length)
      throw new Error(`${results.length} results for ${batch.length} combined entries`)
    for (const [i, { resolve }] of batch.entries()) resolve(results[i] as R)
  }

  async function next(): Promise<void> {
    const count = countOfNext()
    const batch = waiting.slice(0, count).filter(isInTime)
    waiting = waiting.slice(count)
    try {
      if (batch.length > 0) await settle(batch)
    } catch (err) {
      if (batch.length === 1 || isAway(err)) for (const { reject } of batch) reject(err)
      else for (const one of batch) if (isInTime(one)) await settle([one]).catch(one.reject)
    }
    if (waiting.length > 0) setImmediate(next)
    else busy = false
  }

  return (entry) =>
    new Promise((resolve, reject) => {
      waiting.push({ entry, span: tracing?.active(), resolve, reject })
      if (busy) return
      busy = true
      setImmediate(next)
    })
}

const facts: SpanFacts = { name: 'batch', kind: 'internal', attributes: {} }
