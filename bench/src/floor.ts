import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { type Answers, counting, type Limits, type Load } from './load.js'

/** A process that does only what a request cannot do without. */
export interface Floor extends AsyncDisposable {
  readonly url: string
  readonly pids: readonly number[]
  /**
   * @param like a load whose connections it makes in the same way
   * @param bytes of an answer
   */
  load(like?: Load, bytes?: number): Load
}

/** A process with a server of this runtime that does nothing, with the kind of key that the product has with 'rsa'. */
export async function bareServer(key: 'ecdsa' | 'rsa' = 'ecdsa'): Promise<Floor> {
  const child = fork(join(import.meta.dirname, 'bare-server.ts'), [key])
  const ended = once(child, 'exit')
  const [port] = await once(child, 'message')
  return {
    url: `https://127.0.0.1:${port}`,
    pids: [child.pid ?? 0],
    load(like, bytes = 500) {
      const request = { method: 'GET', path: `/${bytes}` } as const
      return like && 'certificates' in like ? { ...like, request } : { requests: [request] }
    },
    async [Symbol.asyncDispose]() {
      child.disconnect()
      await ended
    },
  }
}

/** A process that verifies passwords. */
export function hashAlone(): Floor {
  const child = fork(join(import.meta.dirname, 'hash-alone.ts'))
  const ended = once(child, 'exit')
  const run = async ({ concurrency, seconds }: Limits): Promise<Answers> => {
    const { latency, failures, answered } = counting()
    child.send({ concurrency, seconds })
    const [durations] = await once(child, 'message')
    for (const ms of durations as number[]) answered(200, ms)
    return { latency, failures }
  }
  return {
    url: '',
    pids: [child.pid ?? 0],
    load: () => ({ run }),
    async [Symbol.asyncDispose]() {
      child.disconnect()
      await ended
    },
  }
}
