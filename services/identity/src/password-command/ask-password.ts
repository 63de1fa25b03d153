import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'

/** Asks twice without echo at a terminal; otherwise reads one line of standard input. */
export async function askPassword(): Promise<string> {
  const { stdin, stderr } = process
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const input = createInterface({ input: stdin, output: nowhere, terminal: stdin.isTTY })
  const stop = new AbortController()
  input.once('SIGINT', () => stop.abort(new Error('stopped')))
  const lines = input[Symbol.asyncIterator]()
  const next = async (question: string): Promise<string> => {
    if (stdin.isTTY) stderr.write(question)
    const stopped = new Promise<never>((_, reject) => {
      stop.signal.addEventListener('abort', () => reject(stop.signal.reason), { once: true })
    })
    const { value, done } = await Promise.race([lines.next(), stopped])
    if (stdin.isTTY) stderr.write('\n')
    if (done || value === '') throw new Error('no password was given')
    return value
  }
  try {
    const password = await next('new password: ')
    if (stdin.isTTY && (await next('again: ')) !== password) throw new Error('the passwords differ')
    return password
  } finally {
    input.close()
  }
}
