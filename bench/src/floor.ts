import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Load } from './load.js'

export interface BareServer extends AsyncDisposable {
  readonly url: string
  readonly pids: readonly number[]
  readonly load: Load
}

/** A process with a server of this runtime that does nothing. */
export async function bareServer(): Promise<BareServer> {
  const child = fork(join(import.meta.dirname, 'bare-server.ts'))
  const ended = once(child, 'exit')
  const [port] = await once(child, 'message')
  return {
    url: `https://127.0.0.1:${port}`,
    pids: [child.pid ?? 0],
    load: { requests: [{ method: 'GET', path: '/' }] },
    async [Symbol.asyncDispose]() {
      child.disconnect()
      await ended
    },
  }
}
