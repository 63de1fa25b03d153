import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../system/ports.js'
import { readinessOf, worstState } from './health.js'

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

test('a dependency is ok only if processes report it, and none reports a problem', () => {
  const reports = (...states: string[]) => states.map((bus) => ({ ready: true, checks: { bus } }))
  expect(worstState(reports('ok', 'ok'), 'bus')).toBe('ok')
  expect(worstState(reports('ok', 'away'), 'bus')).toBe('away')
  expect(worstState(reports('ok'), 'database')).toBe('unknown')
  expect(worstState([{ ready: false, checks: {} }], 'bus')).toBe('unknown')
})
