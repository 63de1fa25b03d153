import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { readinessOf } from './health.js'
import { freePort } from './ports.js'

test.each(['not JSON', 'null', '{"ready":true}'])(
  'a program that has taken the port of a process and answers %s is no ready process',
  async (body) => {
    const port = await freePort()
    const server = createServer((_request, response) => void response.end(body))
    onTestFinished(() => void server.close())
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    expect(await readinessOf(`127.0.0.1:${port}`)).toEqual({
      ready: false,
      checks: { process: 'does not answer' },
    })
  },
)
