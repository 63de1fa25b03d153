import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { finished } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'
import type { Running } from './die-with-parent.js'
import { askHealth, untilSilent } from './health.js'
import type { LogFile } from './log-file.js'
import type { Instance } from './processes.js'

export interface NodeOptions {
  /** Opened for each run of the process. */
  readonly log: () => LogFile
  /** A process whose health does not answer for so long is killed; 0: never. */
  readonly silenceMs: number
}

const patienceMs = 25_000 // longer than the process gives itself

/** Starts one of our processes. It hears at descriptor 3 when this process has ended, and ends too. */
export async function startNode(
  { name, entry, env, ops }: Instance,
  { log, silenceMs }: NodeOptions,
): Promise<Running> {
  // what is for the owner of the database, and for the first start, is not for every process
  const { DATABASE_URL: _owner, OVERLAY_ADMIN_PASSWORD: _password, ...inherited } = process.env
  const child = spawn(process.execPath, [entry], {
    env: { ...inherited, ...env, OVERLAY_PARENT_PIPE: '1' },
    detached: true, // Ctrl-C is for the launcher, which stops its children in order
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  await once(child, 'spawn')
  const { pid, stdout, stderr } = child
  if (pid === undefined || !stdout || !stderr) throw new Error(`${name} was spawned without its pipes`)
  child.stdio[3]?.on('error', () => undefined) // the end of the pipe is seen by its exit
  const file = log()
  const written = [stdout, stderr].map((output) => finished(output.pipe(file.input())))

  const over = new AbortController()
  let silent = false
  if (silenceMs > 0)
    untilSilent(ops, silenceMs, over.signal).then(
      () => {
        silent = true
        child.kill('SIGKILL')
      },
      () => undefined, // it has ended
    )
  const ended = once(child, 'exit').then(async ([code, signal]) => {
    over.abort()
    await Promise.all(written)
    await file.close()
    if (silent) return `${name} did not answer for ${silenceMs / 1000} s and was killed`
    return `${name} ended with ${signal ?? `code ${code}`}`
  })
  const stop = async (): Promise<void> => {
    over.abort()
    child.kill('SIGTERM')
    const late = setTimeout(() => child.kill('SIGKILL'), patienceMs)
    await ended
    clearTimeout(late)
  }
  return { pid, ended, stop, [Symbol.asyncDispose]: stop }
}

/** Asks a process for its health until it calls itself ready. */
export async function untilReady({ name, ops }: Instance, signal: AbortSignal): Promise<void> {
  const late = AbortSignal.timeout(startMs)
  while ((await askHealth(ops, 'ready', 2000)) !== 200) {
    if (late.aborted) throw new Error(`${name} is not ready after ${startMs / 1000} s`)
    await pause(20, undefined, { signal })
  }
}

const startMs = 60_000
