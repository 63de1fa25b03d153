import { Agent, request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'

export interface Server {
  /** Requests go to these addresses in turn. */
  readonly addresses: readonly string[]
  readonly caPem: string
}

export interface Certificate {
  readonly key: string
  readonly cert: string
}

/** The source address of a client on this machine. */
export interface Origin {
  readonly localAddress: string
}

export interface Answer {
  readonly status: number
  /** The content type, exactly. */
  readonly type: string | undefined
  /** Seconds, of a client that should wait. */
  readonly retryAfter?: number
  readonly body: {
    readonly data: unknown
    readonly meta: Readonly<Record<string, unknown>>
    readonly error?: { readonly code: string; readonly message: string; readonly cause?: unknown }
  }
}

type Headers = Readonly<Record<string, string>>

export interface Client extends Disposable {
  /** The answer with any status. */
  call(method: string, path: string, body?: unknown, headers?: Headers): Promise<Answer>
  /** The `data` of a successful answer. */
  request<T>(method: string, path: string, body?: unknown): Promise<T>
  /** Sends this token of an API session, or access token, from now on. */
  use(token: string): void
}

/** A client of one of the APIs: '/edge/client/v1' or '/edge/management/v1'. */
export function openClient(
  { addresses, caPem }: Server,
  api: string,
  connection?: Certificate | Origin,
): Client {
  const agent = new Agent({ keepAlive: true, ca: caPem, ...connection })
  let token: string | undefined
  let turn = 0

  const call: Client['call'] = async (method, path, body, more = {}) => {
    const address = addresses[turn++ % addresses.length]
    const raw = typeof body === 'string'
    const requestBody = raw || body === undefined ? body : JSON.stringify(body)
    const headers = {
      accept: 'application/json',
      ...(token && (token.startsWith('ey') ? { authorization: `Bearer ${token}` } : { 'zt-session': token })),
      ...(requestBody !== undefined && {
        'content-type': raw ? 'text/plain' : 'application/json',
        'content-length': Buffer.byteLength(requestBody), // node omits it from a DELETE by default
      }),
      ...more,
    }
    return new Promise((resolve, reject) => {
      const outgoing = httpsRequest(
        `https://${address}${api}${path}`,
        { method, agent, headers },
        (response) => {
          const { 'retry-after': retryAfter } = response.headers
          text(response)
            .then((content) => {
              resolve({
                status: response.statusCode ?? 0,
                type: response.headers['content-type'],
                ...(retryAfter !== undefined && { retryAfter: Number(retryAfter) }),
                body: bodyOf(response.headers['content-type'], content),
              })
            })
            .catch(reject)
        },
      )
      outgoing.on('error', reject)
      outgoing.end(requestBody)
    })
  }

  return {
    call,
    async request<T>(method: string, path: string, body?: unknown) {
      const answer = await call(method, path, body)
      if (answer.status >= 300) {
        throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
      }
      return answer.body.data as T
    },
    use(next) {
      token = next
    },
    [Symbol.dispose]: () => agent.destroy(),
  }
}

const bodyOf = (type: string | undefined, content: string): Answer['body'] =>
  type?.startsWith('application/json') ? (JSON.parse(content) as Answer['body']) : { data: content, meta: {} }
