import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../system/ports.js'
import { untilReady } from './node-process.js'

const hangUp = 'hang up'
type State = { readonly ready: boolean; readonly checks: object } | typeof hangUp

/** Answers with one state after the other, and goes on with the last one. */
async function processWith(...states: readonly State[]) {
  const ops = `127.0.0.1:${await freePort()}`
  let count = 0
  const server = createServer((request, response) => {
    const state = states[Math.min(count++, states.length - 1)]
    if (state === hangUp) request.destroy()
    else response.writeHead(state?.ready ? 200 : 503).end(JSON.stringify(state))
  })
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(Number(ops.split(':')[1]), '127.0.0.1', resolve))
  return { plan: { name: 'policy', ops }, answers: () => count }
}

const { signal } = new AbortController()
const print = (): void => undefined
const ready = { ready: true, checks: {} }
const loading = { ready: false, checks: { database: 'ok', memory: 'not loaded yet' } }
const broken = { ready: false, checks: { database: 'does not answer', memory: 'not loaded yet' } }

test('a process that loads rows is waited for, however long it takes, and reported once', async () => {
  const { plan, answers } = await processWith(loading, loading, loading, loading, ready)
  const lines: string[] = []
  const options = { signal, print: (line: string) => void lines.push(line), reportMs: 1, giveUpMs: 1 }
  await untilReady(plan, options)
  expect(answers()).toBe(5)
  expect(lines).toEqual(['waiting for policy: memory not loaded yet'])
})

test('answers that are missing prove nothing', async () => {
  const { plan, answers } = await processWith(hangUp, loading, hangUp, hangUp, broken, hangUp, ready)
  await untilReady(plan, { signal, print })
  expect(answers()).toBe(7)
})

test('a process whose state does not change is reported once, then given up with its state', async () => {
  const { plan, answers } = await processWith(broken)
  const lines: string[] = []
  const options = { signal, print: (line: string) => void lines.push(line), reportMs: 1, giveUpMs: 500 }
  await expect(untilReady(plan, options)).rejects.toThrow(
    'policy is not ready, for 0.5 s: database does not answer, memory not loaded yet',
  )
  expect(lines.filter((line) => line.includes('database'))).toEqual([
    'waiting for policy: database does not answer, memory not loaded yet',
  ])
  expect(answers()).toBeGreaterThan(1)
})

test('a process that never answers is given up', async () => {
  const { plan } = await processWith(hangUp)
  await expect(untilReady(plan, { signal, print, giveUpMs: 1 })).rejects.toThrow('no answer yet')
})
