import { failureOf, tracing } from '@overlay/rpc'
import { AccessRefused } from '../domain/router-access.js'

/** Serves a request of a router as the first span of a trace. */
export async function traced<T>(name: string, work: () => Promise<T>): Promise<T> {
  if (!tracing) return work()
  const span = tracing.request(name)
  const outcome = { name, attributes: {} }
  return span.run(async () => {
    try {
      const result = await work()
      span.end(outcome)
      return result
    } catch (err) {
      span.end(outcome, err instanceof AccessRefused ? { code: err.name, isError: false } : failureOf(err))
      throw err
    }
  })
}
