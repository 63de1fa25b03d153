import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { EXIT_UNAVAILABLE } from './process.js'

interface Run {
  readonly child: ChildProcess
  /** Waits for a line with this message. */
  logged(message: string): Promise<void>
  /** The lines at `fatal`. */
  fatal(): readonly object[]
  readonly exit: Promise<readonly [code: number | null, signal: string | null]>
}

function run(task: string, env: NodeJS.ProcessEnv = {}): Run {
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', '--conditions=source', `${import.meta.dirname}/test-process.ts`, task],
    { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit', 'pipe'] },
  )
  child.stdio[3]?.on('error', () => undefined) // the child may end before it has read the pipe
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  return {
    child,
    async logged(message) {
      while (!text.includes(`"msg":"${message}"`)) await once(child.stdout ?? child, 'data')
    },
    fatal: () =>
      text
        .trim()
        .split('\n')
        .map((line): { level: string } => JSON.parse(line))
        .filter(({ level }) => level === 'fatal'),
    exit: once(child, 'close') as Promise<[number | null, string | null]>,
  }
}

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s stops it in order',
  async (signal) => {
    const { child, logged, exit } = run('wait')
    await logged('ready')
    child.kill(signal)
    await logged('stopped')
    expect(await exit).toEqual([0, null])
  },
  20_000,
)

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s ends it before it serves, also as the first process of a container',
  async (signal) => {
    const { child, logged, exit } = run('start')
    await logged('ready')
    child.kill(signal)
    expect(await exit).toEqual([0, null]) // the kernel would not let a signal without a handler end that process
  },
  20_000,
)

test.each(['throw', 'reject'])(
  'what nobody catches is logged and ends it: %s',
  async (task) => {
    const { logged, exit } = run(task)
    await logged('crashed')
    expect(await exit).toEqual([1, null])
  },
  20_000,
)

test.each(['fail', 'fail later'])('an error is logged as one line: %s', async (task) => {
  const { fatal, exit } = run(task)
  expect(await exit).toEqual([1, null])
  expect(fatal()).toEqual([
    expect.objectContaining({
      msg: 'program failed',
      err: expect.objectContaining({ message: 'no answer' }),
    }),
  ])
})

test('a program that lacks its database or another process exits with a code of its own', async () => {
  expect(await run('unavailable').exit).toEqual([EXIT_UNAVAILABLE, null])
})

test('wrong settings are logged as one line without a stack', async () => {
  const { fatal, exit } = run('settings')
  expect(await exit).toEqual([1, null])
  const time = expect.any(String)
  const reason = 'settings: LISTEN is not set'
  expect(fatal()).toEqual([{ level: 'fatal', time, service: 'test', reason, msg: 'wrong settings' }])
})

test('the end of the pipe of its parent stops it in order', async () => {
  const { child, logged, exit } = run('wait', { OVERLAY_PARENT_PIPE: '1' })
  await logged('ready')
  child.stdio[3]?.destroy()
  await logged('stopped')
  expect(await exit).toEqual([0, null])
})

test('the end of its parent ends it too when its log is not read', async () => {
  const { child, logged, exit } = run('wait', { OVERLAY_PARENT_PIPE: '1' })
  await logged('ready')
  child.stdout?.destroy()
  child.stdio[3]?.destroy()
  expect(await exit).toEqual([0, null])
})

test('a process that has stopped ends, even if a connection that it makes does not', async () => {
  const { child, logged, exit } = run('connect')
  await logged('ready')
  child.kill('SIGTERM')
  await logged('stopped')
  expect(await exit).toEqual([0, null])
})

test('a second signal ends a stop that hangs', async () => {
  const { child, logged, exit } = run('hang')
  await logged('ready')
  child.kill('SIGTERM')
  const again = setInterval(() => child.kill('SIGTERM'), 50)
  await logged('crashed')
  clearInterval(again)
  expect(await exit).toEqual([1, null])
})
