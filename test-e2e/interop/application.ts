import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** A program on an SDK, in a process of its own. */
export interface Application extends AsyncDisposable {
  /** The next line of its output, which is JSON. Throws if the program ends. */
  next<T>(): Promise<T>
  /** Writes a line to its input. */
  write(line: string): void
  /** Its standard error so far: the log of the SDK. */
  log(): string
}

export interface ApplicationOptions {
  readonly env?: NodeJS.ProcessEnv
  /** The program is killed after this time. */
  readonly timeoutMs: number
}

/** Starts a program that ends with its input. */
export function startApplication(
  command: string,
  args: readonly string[],
  { env = {}, timeoutMs }: ApplicationOptions,
): Application {
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  })
  const ended = endOf(child)
  const log: string[] = []
  child.stdin.on('error', () => undefined) // the program has ended, which `next` reports
  child.stderr.setEncoding('utf8').on('data', (text: string) => log.push(text))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  return {
    async next<T>() {
      const { value } = await lines.next()
      if (value === undefined)
        throw new Error(`the program ended with ${await ended}: ${log.join('').slice(-2000)}`)
      return JSON.parse(value) as T
    },
    write: (line) => void child.stdin.write(`${line}\n`),
    log: () => log.join(''),
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      await ended
    },
  }
}

const endOf = async (child: ChildProcess): Promise<string> => {
  const [code, signal] = await once(child, 'exit')
  return code === null ? `${signal}` : `code ${code}`
}
