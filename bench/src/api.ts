import { Agent, request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'

/** One of the two APIs of a controller, for calls that are not measured. */
export interface Api extends Disposable {
  /** The `data` of a successful response. */
  request<T>(method: string, path: string, body?: object | string): Promise<T>
  /** The number of all entities of a list. */
  total(path: string): Promise<number>
  /** The bytes of the body of an answer. */
  size(path: string): Promise<number>
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

/** @param certificate of the caller */
export function openApi(
  url: string,
  root: string,
  connections: number,
  certificate?: { readonly key: string; readonly cert: string },
): Api {
  const agent = new Agent({
    keepAlive: true,
    maxSockets: connections,
    rejectUnauthorized: false,
    ...certificate,
  })
  let token: string | undefined

  const once = (method: string, path: string, body?: object | string): Promise<string> =>
    new Promise((resolve, reject) => {
      const content = typeof body === 'object' ? JSON.stringify(body) : body
      const headers = {
        accept: 'application/json',
        ...(token && { 'zt-session': token }),
        ...(content !== undefined && {
          'content-type': typeof body === 'string' ? 'text/plain' : 'application/json',
          'content-length': Buffer.byteLength(content),
        }),
      }
      const outgoing = httpsRequest(`${url}${root}${path}`, { method, agent, headers }, (response) => {
        text(response).then((content) => {
          const { statusCode = 0 } = response
          if (statusCode >= 300)
            reject(new RefusedError(statusCode, `${method} ${path}: ${statusCode} ${content}`))
          else resolve(content)
        }, reject)
      })
      outgoing.on('error', (err: NodeJS.ErrnoException) => {
        // the controller may close an idle connection at the moment of its next use
        if (outgoing.reusedSocket && err.code === 'ECONNRESET') resolve(once(method, path, body))
        else reject(new Error(`${method} ${path}: ${err.message}`, { cause: err }))
      })
      outgoing.end(content)
    })

  return {
    async request<T>(method: string, path: string, body?: object | string) {
      const content = await retryWhileBusy(() => once(method, path, body))
      return (content === '' ? undefined : JSON.parse(content).data) as T
    },
    total: async (path) =>
      JSON.parse(await retryWhileBusy(() => once('GET', path))).meta.pagination.totalCount,
    size: async (path) => Buffer.byteLength(await once('GET', path)),
    use(next) {
      token = next
    },
    [Symbol.dispose]: () => agent.destroy(),
  }
}

/** @param more further members of the body: client information, config types */
export async function logIn(
  api: Api,
  username: string,
  password: string,
  more: object = {},
): Promise<string> {
  const body = { username, password, ...more }
  return (await api.request<{ token: string }>('POST', '/authenticate?method=password', body)).token
}

const MAX_ATTEMPTS = 50

/** Repeats a request that a busy controller refuses. */
async function retryWhileBusy(send: () => Promise<string>): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await send()
    } catch (err) {
      const busy = err instanceof RefusedError && (err.status === 429 || err.status === 503)
      if (!busy || attempt === MAX_ATTEMPTS) throw err
      await new Promise((resolve) => setTimeout(resolve, 20 + Math.random() * 80))
    }
  }
}

/** Calls `work` for 0 … count-1, some at the same time. The results are in this order. */
export async function forEach<T>(
  count: number,
  atOnce: number,
  work: (at: number) => Promise<T>,
): Promise<T[]> {
  const results: T[] = new Array(count)
  let next = 0
  const worker = async (): Promise<void> => {
    for (let at = next++; at < count; at = next++) results[at] = await work(at)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return results
}
