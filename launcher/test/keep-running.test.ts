import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { commandOf } from '../src/command-of.js'
import { keepRunning } from '../src/keep-running.js'
import { startNode, untilReady } from '../src/node-process.js'
import { freePort } from '../src/ports.js'
import type { Instance } from '../src/processes.js'

test('starts a process again when it was killed', async () => {
  const { instance, log } = await program(server)
  const lines: string[] = []
  const start = () => startNode(instance, log)
  const kept = keepRunning(await start(), start, (line) => lines.push(line))
  const never = new AbortController().signal
  await untilReady(instance, never)
  const killed = kept.pid()
  process.kill(killed, 'SIGKILL')
  await expect.poll(() => kept.pid()).not.toBe(killed)
  await untilReady(instance, never)
  await kept.stop()
  expect(lines).toEqual(['example ended with SIGKILL; starting it again in 0.1 s'])
  expect(await commandOf(kept.pid())).toBe('')
})

test('pauses longer each time that a process ends at once', async () => {
  const { instance, log } = await program('process.exit(3)')
  const lines: string[] = []
  const start = () => startNode(instance, log)
  const kept = keepRunning(await start(), start, (line) => lines.push(line))
  await expect.poll(() => lines.length, { timeout: 5000 }).toBe(3)
  await kept.stop()
  expect(lines).toEqual([0.1, 0.2, 0.4].map((s) => `example ended with code 3; starting it again in ${s} s`))
})

test('a process has its settings, writes to its log, and is asked to stop before it is made to', async () => {
  const { instance, log } = await program(
    `console.log(process.env.WORD); process.on('SIGTERM', () => { console.log('bye'); process.exit(0) }); ${server}`,
  )
  const running = await startNode({ ...instance, env: { ...instance.env, WORD: 'hello' } }, log)
  await untilReady(instance, new AbortController().signal)
  await running.stop()
  expect(await readFile(log, 'utf8')).toBe('hello\nbye\n')
  expect(await running.ended).toBe('example ended with code 0')
})

const server = `
  import { createServer } from 'node:http'
  createServer((_, answer) => answer.end()).listen(process.env.PORT, '127.0.0.1')`

async function program(source: string): Promise<{ instance: Instance; log: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const entry = join(directory, 'example.mjs')
  await writeFile(entry, source)
  const port = String(await freePort())
  const address = `127.0.0.1:${port}`
  const instance = {
    name: 'example',
    part: 'policy',
    entry,
    env: { PORT: port },
    ops: address,
    listen: address,
  } as const
  return { instance, log: join(directory, 'example.log') }
}
