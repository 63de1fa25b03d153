import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type NodeOptions, startNode, untilReady } from '../src/processes/node-process.js'
import type { ProcessPlan } from '../src/processes/plan-processes.js'
import { openLogFile } from '../src/system/log-file.js'
import { freePort } from '../src/system/ports.js'
import { commandLineOf } from '../src/system/process-identity.js'
import { supervise } from '../src/system/supervise.js'

const patiently = { signal: new AbortController().signal, print: () => undefined }

test('restarts a process that was killed', async () => {
  const { instance, options } = await program(server)
  const lines: string[] = []
  const start = () => startNode(instance, options)
  const supervised = supervise(await start(), start, (line) => lines.push(line))
  await untilReady(instance, patiently)
  const killed = supervised.pid()
  process.kill(killed, 'SIGKILL')
  await expect.poll(() => supervised.pid()).not.toBe(killed)
  await untilReady(instance, patiently)
  await supervised.stop()
  expect(lines).toEqual(['example ended with SIGKILL; starting it again in 0.1 s'])
  expect(await commandLineOf(supervised.pid())).toBe('')
})

test.each([
  [75, true],
  [1, false],
])('a process that ends with code %d may succeed when it is started again: %s', async (code, expected) => {
  const { instance, options } = await program(`process.exit(${code})`)
  const running = await startNode(instance, options)
  expect(await running.ended).toBe(`example ended with code ${code}`)
  expect(running.endedTransiently()).toBe(expected)
})

test('the reason of an end is the last one that this run has logged', async () => {
  const { instance, log, options } = await program(
    `console.log(JSON.stringify({ level: 'fatal', reason: 'no settings' })); process.exitCode = 1`,
  )
  await writeFile(log, '{"level":"fatal","reason":"of an earlier run"}\n')
  const running = await startNode(instance, options)
  await running.ended
  expect(running.fatalReason()).toBe('no settings')
})

test('pauses longer after each failed restart', async () => {
  const { instance, options } = await program('process.exit(3)')
  const lines: string[] = []
  const start = () => startNode(instance, options)
  const supervised = supervise(await start(), start, (line) => lines.push(line))
  await expect.poll(() => lines.length).toBe(3)
  await supervised.stop()
  expect(lines).toEqual([0.1, 0.2, 0.4].map((s) => `example ended with code 3; starting it again in ${s} s`))
})

test('a process gets its settings, writes to its log, and gets SIGINT first', async () => {
  const { instance, log, options } = await program(
    `console.log(process.env.WORD); process.on('SIGINT', () => { console.error('bye'); process.exit(0) }); ${server}`,
  )
  const running = await startNode({ ...instance, env: { ...instance.env, WORD: 'hello' } }, options)
  await untilReady(instance, patiently)
  // Output and errors come through two pipes: their order in the log is that of arrival.
  await expect.poll(() => readFile(log, 'utf8')).toBe('hello\n/healthz/ready\n')
  await running.stop()
  expect(await readFile(log, 'utf8')).toBe('hello\n/healthz/ready\nbye\n')
  expect(await running.ended).toBe('example ended with code 0')
})

test('restarts a process that runs and does not answer', async () => {
  const { instance, log, options } = await program(server)
  const lines: string[] = []
  const start = () => startNode(instance, { ...options, silenceMs: 600 })
  const supervised = supervise(await start(), start, (line) => lines.push(line))
  await expect.poll(() => readFile(log, 'utf8').catch(() => '')).toContain('live')
  const stopped = supervised.pid()
  process.kill(stopped, 'SIGSTOP')
  await expect.poll(() => supervised.pid()).not.toBe(stopped)
  await untilReady(instance, patiently)
  await supervised.stop()
  expect(lines[0]).toBe('example did not answer for 0.6 s and was killed; starting it again in 0.1 s')
})

test('a process that has not answered yet is not killed', async () => {
  const { instance, log, options } = await program(`setTimeout(() => console.log('waited'), 1000)`)
  const running = await startNode(instance, { ...options, silenceMs: 60 })
  expect(await running.ended).toBe('example ended with code 0')
  expect(await readFile(log, 'utf8')).toBe('waited\n')
})

const server = `
  import { createServer } from 'node:http'
  createServer(({ url }, answer) => answer.end(() => console.log(url))).listen(process.env.PORT, '127.0.0.1')`

async function program(
  source: string,
): Promise<{ instance: ProcessPlan; log: string; options: NodeOptions }> {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const entry = join(directory, 'example.mjs')
  await writeFile(entry, source)
  const port = String(await freePort())
  const address = `127.0.0.1:${port}`
  const instance = {
    name: 'example',
    entry,
    env: { PORT: port },
    ops: address,
    stage: 'services',
    sharedSockets: [],
  } as const
  const log = join(directory, 'example.log')
  const options = { log: () => openLogFile(log, { maxBytes: 1024, files: 3 }), silenceMs: 0 }
  return { instance, log, options }
}
