import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { basename } from 'node:path'
import type { Account } from './account.js'
import type { LogFile } from './log-file.js'

export interface Program {
  readonly path: string
  readonly args: readonly string[]
  readonly account?: Account
  readonly readyWords: string // what it writes to standard error when it is ready
  readonly log?: LogFile
}

/** A server of this machine that runs. */
export interface Running extends AsyncDisposable {
  readonly pid: number
  /** Says how it ended, whoever ended it. */
  readonly ended: Promise<string>
  stop(): Promise<void>
}

const patienceMs = 10_000

// The inner shell waits for the end of our pipe and stops the program then; the outer becomes the program.
const untilPipeEnds = '(read -r _ <&3 || kill -INT $$) >/dev/null 2>&1 & exec "$@" 3<&-'

/** Starts a program that is not ours so that it ends when this process ends, however that ends. */
export async function startWithParent({ path, args, account, readyWords, log }: Program): Promise<Running> {
  const child = spawn('/bin/sh', ['-c', untilPipeEnds, 'sh', path, ...args], {
    ...account,
    // no locale of the host, and no working directory that the account may not enter
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
    life.on('error', () => undefined) // the shell may be gone too
    life.end('\n') // nothing to stop any more, and the process id may soon be another's
    return `${basename(path)} ended with ${signal ?? `code ${code}`}`
  })
  if (log) errors.pipe(log.input()).once('close', () => log.close())
  let said = ''
  const ready = new Promise<boolean>((resolve) => {
    const listen = (chunk: Buffer): void => {
      said = (said + chunk).slice(-4000)
      if (!said.includes(readyWords)) return
      errors.off('data', listen).resume()
      resolve(true)
    }
    errors.on('data', listen)
  })
  if (!(await Promise.race([ready, ended.then(() => false)])))
    throw new Error(`${path} did not start: ${said.trim()}`)

  const stop = async (): Promise<void> => {
    child.kill('SIGINT')
    const late = setTimeout(() => child.kill('SIGKILL'), patienceMs)
    await ended
    clearTimeout(late)
  }
  return { pid: child.pid, ended, stop, [Symbol.asyncDispose]: stop }
}
