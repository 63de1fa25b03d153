import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { Exchange } from './exchange.js'
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

test('a host is refused from 301 characters on, in the header and in the target', async () => {
  const server = createServer(
    requestListener({ fetch: (_method, exchange) => (exchange as Exchange).outgoing.end() as never }),
  ).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const statusOf = async (host: string, path: string): Promise<number | undefined> => {
    const sent = request({ host: '127.0.0.1', port, path, headers: { host }, agent: false }).end()
    const [answer] = await once(sent, 'response')
    answer.resume()
    return answer.statusCode
  }
  const hostOf = (length: number) => '%61'.repeat(100).slice(-length).padStart(length, 'b')
  for (const target of [`https://${hostOf(300)}/x`, `https:///${hostOf(300)}?x`, `http://${hostOf(300)}`])
    expect([target, await statusOf('example', target)]).toEqual([target, 200])
  for (const target of [`https://${hostOf(301)}/x`, `https:///${hostOf(301)}?x`, `http://u@${hostOf(299)}`])
    expect([target, await statusOf('example', target)]).toEqual([target, 400])
  expect(await statusOf(`${'a.'.repeat(149)}bb`, '/x')).toBe(200)
  expect(await statusOf(`${'a.'.repeat(149)}bbb`, '/x')).toBe(400)
})
