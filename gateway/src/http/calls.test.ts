import type { IncomingMessage, ServerResponse } from 'node:http'
import { cancellationOf } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { abortCalls, callContext } from './calls.js'
import { openExchange, type RequestContext } from './exchange.js'

const requestOf = () => {
  const env = openExchange({ headers: {}, socket: {} } as IncomingMessage, {} as ServerResponse)
  return { env, context: callContext({ env } as RequestContext) }
}
const reason = new Error('the client went away')

test('calls end with their request, and none has an AbortController unless it reads the signal', () => {
  const { env, context } = requestOf()
  const cancellation = cancellationOf(context)
  let ended = 0
  cancellation.listen(() => ended++)
  const remove = cancellation.listen(() => ended++)
  remove()
  expect([cancellation.isCancelled(), ended]).toEqual([false, 0])
  abortCalls(env, reason)
  cancellation.listen(() => ended++) // a call that begins later
  expect([cancellation.isCancelled(), cancellation.reason(), ended, env.abort]).toEqual([
    true,
    reason,
    2,
    undefined,
  ])
  expect([context.signal.aborted, context.signal.reason]).toEqual([true, reason])
})

test('a signal that was read before the end is aborted', () => {
  const { env, context } = requestOf()
  const { signal } = context
  abortCalls(env, reason)
  expect([signal.aborted, signal.reason]).toEqual([true, reason])
})
