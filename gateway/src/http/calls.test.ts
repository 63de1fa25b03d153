import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { callContext } from './calls.js'
import { openExchange, type RequestContext } from './exchange.js'

test('calls end with their request, whenever they begin', () => {
  const env = openExchange({ headers: {}, socket: {} } as IncomingMessage, {} as ServerResponse)
  const { signal } = callContext({ env } as RequestContext)
  const reason = new Error('the client has closed the connection')
  expect(signal.aborted).toBe(false)
  env.abort.abort(reason)
  expect([signal.reason, callContext({ env } as RequestContext).signal.reason]).toEqual([reason, reason])
})
