import { Agent, request } from 'node:https'
import { text } from 'node:stream/consumers'

/** One of the two APIs of a controller, for what is not measured. */
export interface Api extends Disposable {
  /** The `data` of an answer that says success. */
  ask<T>(method: string, path: string, body?: object | string): Promise<T>
  /** Sends this token from now on. */
  use(token: string): void
}

export const clientRoot = '/edge/client/v1'
export const managementRoot = '/edge/management/v1'

export class RefusedError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message)
    this.name = 'Refused'
  }
}

export function openApi(url: string, root: string, connections: number): Api {
  const agent = new Agent({ keepAlive: true, maxSockets: connections, rejectUnauthorized: false })
  let token: string | undefined

  const once = (method: string, path: string, body?: object | string): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const sent = typeof body === 'object' ? JSON.stringify(body) : body
      const headers = {
        accept: 'application/json',
        ...(token && { 'zt-session': token }),
        ...(sent !== undefined && {
          'content-type': typeof body === 'string' ? 'text/plain' : 'application/json',
          'content-length': Buffer.byteLength(sent),
        }),
      }
      const asked = request(`${url}${root}${path}`, { method, agent, headers }, (answer) => {
        text(answer).then((said) => {
          const { statusCode = 0 } = answer
          if (statusCode >= 300) reject(new RefusedError(statusCode, `${method} ${path}: ${statusCode} ${said}`))
          else resolve(said === '' ? undefined : JSON.parse(said).data)
        }, reject)
      })
      asked.on('error', (err: NodeJS.ErrnoException) => {
        // the controller may close a connection that was idle just when it is used again
        if (asked.reusedSocket && err.code === 'ECONNRESET') resolve(once(method, path, body))
        else reject(new Error(`${method} ${path}: ${err.message}`, { cause: err }))
      })
      asked.end(sent)
    })

  return {
    ask: <T>(method: string, path: string, body?: object | string) =>
      patiently(() => once(method, path, body)) as Promise<T>,
    use(next) {
      token = next
    },
    [Symbol.dispose]: () => agent.destroy(),
  }
}

/** @param more what else the body says: about the client, wanted config types */
export async function logIn(
  api: Api,
  username: string,
  password: string,
  more: object = {},
): Promise<string> {
  const body = { username, password, ...more }
  return (await api.ask<{ token: string }>('POST', '/authenticate?method=password', body)).token
}

const patience = 50

/** A controller that has too much to do says so, and is asked again. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await ask()
    } catch (err) {
      const busy = err instanceof RefusedError && (err.status === 429 || err.status === 503)
      if (!busy || tried === patience) throw err
      await new Promise((resolve) => setTimeout(resolve, 20 + Math.random() * 80))
    }
  }
}

/** Does it for 0 … count-1, a few at once; what comes back is in this order. */
export async function forEach<T>(
  count: number,
  atOnce: number,
  work: (at: number) => Promise<T>,
): Promise<T[]> {
  const made: T[] = new Array(count)
  let next = 0
  const worker = async (): Promise<void> => {
    for (let at = next++; at < count; at = next++) made[at] = await work(at)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return made
}
