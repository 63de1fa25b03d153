import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { basename } from 'node:path'
import { PROGRAM_KILL_MS, PROGRAM_STOP_MS } from '../limits.js'
import type { Account } from './account.js'
import type { LogFile } from './log-file.js'

export interface Program {
  readonly path: string
  readonly args: readonly string[]
  readonly account?: Account
  readonly readyText: string // written to standard error when the program is ready
  readonly log?: LogFile
  /** How long a stop may take; absent: 10 s. */
  readonly stopMs?: number
  /** Ends the program when its stop takes longer; absent: SIGKILL, which follows any other after 8 s. */
  readonly lateSignal?: NodeJS.Signals
}

/** A process of this machine. */
export interface RunningProcess extends AsyncDisposable {
  readonly pid: number
  /** Resolves with the reason when the process has ended. */
  readonly ended: Promise<string>
  stop(): Promise<void>
}

// The inner shell stops the program when our pipe ends. The outer shell becomes the program.
const untilPipeEnds = '(read -r _ <&3 || kill -INT $$) >/dev/null 2>&1 & exec "$@" 3<&-'

/** Starts a program of others, which ends when this process ends for any reason. */
export async function startProgram({
  path,
  args,
  account,
  readyText,
  log,
  stopMs = PROGRAM_STOP_MS,
  lateSignal = 'SIGKILL',
}: Program): Promise<RunningProcess> {
  const child = spawn('/bin/sh', ['-c', untilPipeEnds, 'sh', path, ...args], {
    ...account,
    // no locale of the host, and a working directory that every account may enter
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
    cwd: '/',
    detached: true, // Ctrl-C is for the launcher, which stops its children in order
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  })
  await once(child, 'spawn')
  const [, , errors, life] = child.stdio
  if (child.pid === undefined || !errors || !(life && 'end' in life))
    throw new Error('spawned without its pipes')

  const ended = once(child, 'exit').then(([code, signal]) => {
    life.on('error', () => undefined) // the shell may have ended too
    life.end('\n') // nothing to stop any more, and another process may get the id
    return `${basename(path)} ended with ${signal ?? `code ${code}`}`
  })
  if (log) errors.pipe(log.input()).once('close', () => log.close())
  let output = ''
  const ready = new Promise<boolean>((resolve) => {
    const listen = (chunk: Buffer): void => {
      output = (output + chunk).slice(-4000)
      if (!output.includes(readyText)) return
      errors.off('data', listen).resume()
      resolve(true)
    }
    errors.on('data', listen)
  })
  if (!(await Promise.race([ready, ended.then(() => false)])))
    throw new Error(`${path} did not start: ${output.trim()}`)

  const stop = async (): Promise<void> => {
    child.kill('SIGINT')
    const late = setTimeout(() => child.kill(lateSignal), stopMs)
    const last = setTimeout(() => child.kill('SIGKILL'), stopMs + PROGRAM_KILL_MS)
    await ended
    clearTimeout(late)
    clearTimeout(last)
  }
  return { pid: child.pid, ended, stop, [Symbol.asyncDispose]: stop }
}
