import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, rename, stat } from 'node:fs/promises'
import { get } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { Instance } from './processes.js'
import type { Running } from './tied-process.js'

const patienceMs = 25_000 // longer than the process gives itself
const largestLog = 16 * 1024 * 1024

/** Starts one of our processes. It hears at descriptor 3 when this process has ended, and ends too. */
export async function startNode({ name, entry, env }: Instance, logFile: string): Promise<Running> {
  const log = await openLogFile(logFile)
  // what is for the owner of the database, and for the first start, is not for every process
  const { DATABASE_URL: _owner, OVERLAY_ADMIN_PASSWORD: _password, ...inherited } = process.env
  const child = spawn(process.execPath, [entry], {
    env: { ...inherited, ...env, OVERLAY_PARENT_PIPE: '1' },
    detached: true, // Ctrl-C is for the launcher, which stops its children in order
    stdio: ['ignore', log.fd, log.fd, 'pipe'],
  })
  await once(child, 'spawn').finally(() => log.close())
  if (child.pid === undefined) throw new Error(`${name} was spawned without a process id`)
  child.stdio[3]?.on('error', () => undefined) // the end of the pipe is seen by its exit

  const ended = once(child, 'exit').then(([code, signal]) => `${name} ended with ${signal ?? `code ${code}`}`)
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    const late = setTimeout(() => child.kill('SIGKILL'), patienceMs)
    await ended
    clearTimeout(late)
  }
  return { pid: child.pid, ended, stop, [Symbol.asyncDispose]: stop }
}

/** Appends; what has grown too large is set aside, and replaces what was set aside before. */
async function openLogFile(path: string) {
  const size = await stat(path).then(
    ({ size }) => size,
    () => 0,
  )
  if (size > largestLog) await rename(path, `${path}.old`)
  return open(path, 'a', 0o600)
}

/** Asks a process for its health until it calls itself ready. */
export async function untilReady({ name, ops }: Instance, signal: AbortSignal): Promise<void> {
  const late = AbortSignal.timeout(startMs)
  while (!(await isReady(ops))) {
    if (late.aborted) throw new Error(`${name} is not ready after ${startMs / 1000} s`)
    await pause(20, undefined, { signal })
  }
}

const startMs = 60_000

const isReady = (opsAddress: string): Promise<boolean> =>
  new Promise((resolve) => {
    const asked = get(`http://${opsAddress}/healthz/ready`, { agent: false, timeout: 2000 }, (answer) => {
      answer.resume()
      resolve(answer.statusCode === 200)
    })
    asked.on('timeout', () => asked.destroy()).on('error', () => resolve(false))
  })
