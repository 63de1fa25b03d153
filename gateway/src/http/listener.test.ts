import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { requestListener } from './listener.js'

const failing = {
  'at once': () => {
    throw new Error('of the error handler')
  },
  later: async () => {
    throw new Error('of the error handler')
  },
}

test.each(Object.entries(failing))(
  'a request whose error handler fails %s ends its connection alone',
  async (_when, fetch) => {
    const server = createServer(requestListener({ fetch })).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    for (let n = 0; n < 2; n++)
      await expect(globalThis.fetch(`http://127.0.0.1:${port}/`)).rejects.toMatchObject({
        cause: { code: 'UND_ERR_SOCKET' },
      })
  },
)
