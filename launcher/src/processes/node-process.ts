import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { finished } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { EXIT_UNAVAILABLE, type Health } from '@overlay/process'
import {
  LOG_END_BYTES,
  PROCESS_STOP_MS,
  START_ANSWER_MS,
  START_POLL_MS,
  START_STALLED_MS,
  WAITING_REPORT_MS,
} from '../limits.js'
import type { LogFile } from '../system/log-file.js'
import type { RunningProcess } from '../system/start-program.js'
import { fatalReasonIn } from './fatal-reason.js'
import { askOps, healthIn, problemsIn, untilUnresponsive } from './health.js'
import type { ProcessPlan } from './plan-processes.js'

export interface NodeOptions {
  /** Opens the log file, for each run of the process. */
  readonly log: () => LogFile
  /** A process whose health address does not answer for so long is killed; 0: never. */
  readonly silenceMs: number
}

export interface NodeProcess extends RunningProcess {
  /** Whether it has ended because something was unavailable: it may succeed when it is started again. */
  endedTransiently(): boolean
  /** The reason that it has logged. */
  fatalReason(): string | undefined
}

/** Starts a process of the product. It ends when descriptor 3 ends, which is when this process ends. */
export async function startNode(
  { name, entry, env, ops, sharedSockets }: ProcessPlan,
  { log, silenceMs }: NodeOptions,
): Promise<NodeProcess> {
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

  let logEnd = ''
  for (const output of [stdout, stderr])
    output.on('data', (chunk) => {
      logEnd = (logEnd + chunk).slice(-LOG_END_BYTES)
    })

  const exited = new AbortController()
  let silent = false
  let isTransient = false
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
    isTransient = silent || code === EXIT_UNAVAILABLE
    await Promise.all(written)
    await file.close()
    if (silent) return `${name} did not answer for ${silenceMs / 1000} s and was killed`
    return `${name} ended with ${signal ?? `code ${code}`}`
  })
  const stop = async (): Promise<void> => {
    exited.abort()
    child.kill('SIGINT') // as the whole product stops, clients have no other gateway to change to
    const late = setTimeout(() => child.kill('SIGKILL'), PROCESS_STOP_MS)
    await ended
    clearTimeout(late)
  }
  return {
    pid,
    ended,
    endedTransiently: () => isTransient,
    fatalReason: () => fatalReasonIn(logEnd),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

export interface ReadyOptions {
  readonly signal: AbortSignal
  readonly print: (line: string) => void
  /** A state that lasts so long is printed. */
  readonly reportMs?: number
  /** A state that lasts so long is the last one. */
  readonly giveUpMs?: number
}

/**
 * Polls a process until it reports that it is ready. Fails when its state, which it reports, has not changed for a long
 * time. An answer that is missing proves nothing: the machine may be busy. Loading rows into memory is progress.
 */
export async function untilReady(
  { name, ops }: Pick<ProcessPlan, 'name' | 'ops'>,
  { signal, print, reportMs = WAITING_REPORT_MS, giveUpMs = START_STALLED_MS }: ReadyOptions,
): Promise<void> {
  let state = 'no answer yet'
  let since = performance.now()
  let progressedAt = since
  let isReported = false
  for (;;) {
    const answer = await askOps(ops, '/healthz/ready', START_ANSWER_MS)
    if (answer?.status === 200) return
    const health = answer && healthIn(answer.body)
    const now = performance.now()
    const next = health ? problemsIn(health).join(', ') : state
    if (next !== state || (health && isLoading(health))) progressedAt = now
    if (next !== state) {
      state = next
      since = now
      isReported = false
    }
    if (now - progressedAt >= giveUpMs)
      throw new Error(`${name} is not ready, for ${giveUpMs / 1000} s: ${state}`)
    if (now - since >= reportMs && !isReported) {
      print(`waiting for ${name}: ${state}`)
      isReported = true
    }
    await pause(START_POLL_MS, undefined, { signal })
  }
}

const isLoading = ({ checks: { database, memory = 'ok' } }: Health): boolean =>
  database === 'ok' && memory !== 'ok'
