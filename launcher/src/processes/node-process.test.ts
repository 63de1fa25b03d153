import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { untilReady } from './node-process.js'
import { freePort } from './ports.js'

/** Answers with one state after the other, and goes on with the last one. */
async function processWith(...states: readonly { ready: boolean; checks: object }[]) {
  const ops = `127.0.0.1:${await freePort()}`
  let count = 0
  const server = createServer((_request, response) => {
    const state = states[Math.min(count++, states.length - 1)]
    response.writeHead(state?.ready ? 200 : 503).end(JSON.stringify(state))
  })
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(Number(ops.split(':')[1]), '127.0.0.1', resolve))
  return { plan: { name: 'policy', ops }, answers: () => count }
}

const { signal } = new AbortController()
const ready = { ready: true, checks: {} }
const loading = { ready: false, checks: { database: 'ok', memory: 'not loaded yet' } }
const broken = { ready: false, checks: { database: 'does not answer', memory: 'not loaded yet' } }

test('a process that loads rows is waited for, however long it takes', async () => {
  const { plan, answers } = await processWith(loading, loading, loading, ready)
  await untilReady(plan, signal, 1)
  expect(answers()).toBe(4)
})

test('a process that is not ready for another reason is given up', async () => {
  const { plan } = await processWith(broken)
  await expect(untilReady(plan, signal, 1)).rejects.toThrow('policy is not ready after 0.001 s')
})
