import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { finished } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'
import type { LogFile } from '../log-file.js'
import type { RunningProcess } from './die-with-parent.js'
import { askOps, healthIn, untilUnresponsive } from './health.js'
import type { ProcessPlan } from './processes.js'

export interface NodeOptions {
  /** Opens the log file, for each run of the process. */
  readonly log: () => LogFile
  /** A process whose health address does not answer for so long is killed; 0: never. */
  readonly silenceMs: number
}

const STOP_MS = 25_000 // longer than the process's own limit

/** Starts a process of the product. It ends when descriptor 3 ends, which is when this process ends. */
export async function startNode(
  { name, entry, env, ops, sharedSockets }: ProcessPlan,
  { log, silenceMs }: NodeOptions,
): Promise<RunningProcess> {
  // the processes must not get the rights of the database's owner and the password of the administrator
  const { DATABASE_URL: _owner, OVERLAY_ADMIN_PASSWORD: _password, ...inherited } = process.env
  const child = spawn(process.execPath, [entry], {
    // one heap of the C library for all threads: with one for each, freed memory stays with the process
    env: { MALLOC_ARENA_MAX: '1', ...inherited, ...env, OVERLAY_PARENT_PIPE: '1' },
    detached: true, // Ctrl-C is for the launcher, which stops its children in order
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', ...sharedSockets.map(({ fd }) => fd)],
  })
  await once(child, 'spawn')
  const { pid, stdout, stderr } = child
  if (pid === undefined || !stdout || !stderr) throw new Error(`${name} was spawned without its pipes`)
  child.stdio[3]?.on('error', () => undefined) // the exit of the process reports it
  const file = log()
  const written = [stdout, stderr].map((output) => finished(output.pipe(file.input())))

  const exited = new AbortController()
  let silent = false
  if (silenceMs > 0)
    untilUnresponsive(ops, silenceMs, exited.signal).then(
      () => {
        silent = true
        child.kill('SIGKILL')
      },
      () => undefined, // the process has ended
    )
  const ended = once(child, 'exit').then(async ([code, signal]) => {
    exited.abort()
    await Promise.all(written)
    await file.close()
    if (silent) return `${name} did not answer for ${silenceMs / 1000} s and was killed`
    return `${name} ended with ${signal ?? `code ${code}`}`
  })
  const stop = async (): Promise<void> => {
    exited.abort()
    child.kill('SIGINT') // as the whole product stops, clients have no other gateway to change to
    const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    await ended
    clearTimeout(late)
  }
  return { pid, ended, stop, [Symbol.asyncDispose]: stop }
}

/**
 * Polls a process until it reports that it is ready. Fails when it is not after `startMs`, unless it loads rows into its
 * memory: that takes as long as the network is large.
 */
export async function untilReady(
  { name, ops }: Pick<ProcessPlan, 'name' | 'ops'>,
  signal: AbortSignal,
  startMs = START_MS,
): Promise<void> {
  const late = AbortSignal.timeout(startMs)
  for (;;) {
    const answer = await askOps(ops, '/healthz/ready', READY_MS)
    if (answer?.status === 200) return
    const { database, memory = 'ok' } = (answer && healthIn(answer.body)?.checks) ?? {}
    const isLoading = database === 'ok' && memory !== 'ok'
    if (late.aborted && !isLoading) throw new Error(`${name} is not ready after ${startMs / 1000} s`)
    await pause(20, undefined, { signal })
  }
}

const START_MS = 60_000
const READY_MS = 2000
