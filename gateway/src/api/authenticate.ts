import type { IncomingMessage } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { clientAddressOf } from '@overlay/process/tls'
import { type ApiSession, type AuthenticateRequest, type Context, Fault } from '@overlay/rpc'
import { renderSession } from '../cache/session.js'
import type { Sessions } from '../cache/sessions.js'
import type { Services } from '../clients/services.js'
import { json, jsonBytes } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { peerCertificates, peerLeaf } from '../http/connection.js'
import { sendData } from '../http/envelope.js'
import { acceptBody, type BodySpec, type RequestContext } from '../http/exchange.js'
import { queryOf } from '../http/query.js'
import { credentialsOf } from '../http/session.js'
import { addHeader } from '../http/write.js'
import { HELD_LOGIN_MS } from '../limits.js'
import type { Handlers } from './operations.js'
import { apiSessionSchema } from './wire-schemas.js'

/** Logins, by all methods. Both APIs have them. */
export const authenticate = ({ identity }: Services, sessions: Sessions): Handlers => ({
  'POST /authenticate': acceptBody(
    login,
    async (c, _, body) => {
      const opened = await logIn(identity, c, queryOf(c).get('method') ?? '', body)
      const session = sessions.add(opened)
      c.env.reportedSession = session
      addHeader(c, 'zt-session', opened.token)
      return sendData(c, renderSession(session))
    },
    {
      query: [
        {
          name: 'method',
          type: 'string',
          required: true,
          oneOf: ['password', 'cert', 'ext-jwt'],
          description: 'How the caller proves who it is.',
        },
      ],
      response: { data: apiSessionSchema, envelope: 'currentApiSessionDetailEnvelope', fails: [401] },
    },
  ),
})

type LoginBody = ReturnType<typeof login.read>

/** Opens an API session for what the client presents. */
export function logIn(
  identity: Pick<Services['identity'], 'authenticate'>,
  c: RequestContext,
  method: string,
  { username = '', password = '', configTypes = [], envInfo, sdkInfo }: LoginBody,
): Promise<ApiSession> {
  const { incoming } = c.env
  const request = {
    method,
    username,
    password,
    bearerTokens: [...credentialsOf(incoming).bearers],
    configTypes: [...configTypes],
    envInfo: bytesOf(envInfo),
    sdkInfo: bytesOf(sdkInfo),
    ipAddress: clientAddressOf(incoming.socket),
  }
  return presenting(incoming, method, (certificates) => {
    const context = callContext(c)
    return identity
      .authenticate({ ...request, ...certificates }, context)
      .catch((err: unknown) => refusedSlowly(err, context))
  })
}

/**
 * Throws `err`. Clients that repeat a login at once after 429, regardless of `Retry-After`, would otherwise take most of
 * the time of the processor from the logins that are queued.
 */
async function refusedSlowly(err: unknown, context: Context): Promise<never> {
  if (err instanceof Fault && err.code === 'SERVER_TOO_MANY_REQUESTS')
    await pause(HELD_LOGIN_MS, undefined, { signal: context.signal }).catch(() => undefined) // the client has disconnected
  throw err
}

const bytesOf = (value: object | undefined): Buffer => (value ? jsonBytes(value) : Buffer.alloc(0))

type Certificates = Pick<AuthenticateRequest, 'peerCertificates' | 'isLeafAlone'>

/** Logs in with the leaf alone, and with all certificates only if an authority of the network has not issued it. */
async function presenting<T>(
  incoming: IncomingMessage,
  method: string,
  logIn: (certificates: Certificates) => Promise<T>,
): Promise<T> {
  const leaf = method === 'cert' ? peerLeaf(incoming) : undefined
  if (!leaf) return logIn({ peerCertificates: [], isLeafAlone: false })
  try {
    return await logIn({ peerCertificates: [leaf], isLeafAlone: true })
  } catch (err) {
    if (!(err instanceof Fault && err.code === 'CHAIN_REQUIRED')) throw err
    return logIn({ peerCertificates: peerCertificates(incoming), isLeafAlone: false })
  }
}

const text = (max: number, min = 0) => ({
  type: 'string',
  ...(min > 0 && { minLength: min }),
  maxLength: max,
})

export interface Login {
  readonly username?: string
  readonly password?: string
  readonly configTypes?: readonly string[]
  readonly envInfo?: object
  readonly sdkInfo?: object
}

export const login: BodySpec<Login> = json(
  'auth',
  {
    title: 'authenticate',
    type: 'object',
    properties: {
      configTypes: { type: 'array', maxItems: 500, items: text(4096) },
      envInfo: {
        type: 'object',
        properties: {
          arch: text(255),
          domain: text(253),
          hostname: text(253),
          os: text(255),
          osRelease: text(255),
          osVersion: text(255),
        },
      },
      password: text(100, 5),
      sdkInfo: {
        type: 'object',
        properties: {
          appId: text(255),
          appVersion: text(255),
          branch: text(255),
          revision: text(255),
          type: text(255),
          version: text(255),
        },
      },
      username: text(100, 4),
    },
  },
  false,
)
