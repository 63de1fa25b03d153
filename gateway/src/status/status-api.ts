import { Fault, faults } from '@overlay/rpc'
import type { Sessions } from '../cache/sessions.js'
import type { Services } from '../clients/services.js'
import { callContext } from '../http/calls.js'
import { failureText, retryAfterOf, sendData } from '../http/envelope.js'
import type { MountedApi, Protocol, RequestContext } from '../http/exchange.js'
import { sendDialogue } from '../http/html.js'
import { accepts, contentTypeOf, hasBody } from '../http/negotiate.js'
import { queryOf } from '../http/query.js'
import { STATUS_API } from '../http/request-log.js'
import { forbidStoring, JSON_HEADERS } from '../http/send.js'
import { credentialsOf, type Session } from '../http/session.js'
import { write } from '../http/write.js'
import { REFRESH_SECONDS } from '../limits.js'
import { tooMany } from '../oidc/pages.js'
import { FORM_TYPE } from '../oidc/requests.js'
import { certificatesOf, concernsOf, daysUntil } from './concerns.js'
import { loginSteps } from './login.js'
import { browserSession, codePage, endedSession, keepToken, loginPage, refusedPage } from './login-pages.js'
import {
  isService,
  type NetworkStatus,
  nameOf,
  openStatus,
  type ReadStatus,
  type StatusOptions,
} from './status.js'
import { statusPage } from './status-page.js'

export interface StatusApiOptions extends Pick<StatusOptions, 'describeReplicas' | 'address'> {
  readonly services: Services
  readonly sessions: Sessions
}

/** The status page, at `/status`. None of its operations needs an API session: each checks what it receives. */
export function statusApi({ services, sessions, ...deps }: StatusApiOptions): MountedApi<'status'> {
  const read = openStatus({ ...deps, routers: services.entitiesOf('sessions') })
  return {
    api: STATUS_API,
    root: '',
    protocol,
    operations: {
      'GET /status': 'none',
      'POST /status/login': 'none',
      'POST /status/code': 'none',
      'POST /status/logout': 'none',
    },
    handlers: {
      'GET /status': (c) => (isForPerson(c) ? showPage(c, sessions, read) : sendStatus(c, sessions, read)),
      ...loginSteps(services, sessions),
    },
  }
}

const protocol: Protocol = {
  check({ env: { incoming } }, { body }) {
    if (body && hasBody(incoming) && contentTypeOf(incoming) !== FORM_TYPE)
      throw new Fault('UNSUPPORTED_MEDIA_TYPE')
  },
  refuse(c, fault) {
    const [status] = faults[fault.code]
    if (accepts(c.env.incoming, 'text/html')) return sendDialogue(c, refusedPage(textOf(fault), status))
    return write(c, status, JSON_HEADERS, failureText(fault, c.env.requestId))
  },
}

function textOf(fault: Fault): string {
  const [status] = faults[fault.code]
  if (status === 429) return tooMany(Number(retryAfterOf(fault)))
  return status >= 500 ? 'The controller cannot answer at present. Try again later.' : fault.message
}

/** Programs present a session in the usual headers. */
function isForPerson({ env: { incoming } }: RequestContext): boolean {
  const { token, bearers } = credentialsOf(incoming)
  return accepts(incoming, 'text/html') && token === '' && bearers.length === 0
}

async function sendStatus(c: RequestContext, sessions: Sessions, read: ReadStatus): Promise<Response> {
  const session = await sessions.find(credentialsOf(c.env.incoming))
  const refusal = refusalOf(session)
  if (refusal !== undefined) throw new Fault('UNAUTHORIZED', refusal)
  enter(c, session)
  forbidStoring(c)
  return sendData(c, renderStatus(await read(callContext(c))))
}

async function showPage(c: RequestContext, sessions: Sessions, read: ReadStatus): Promise<Response> {
  const found = await browserSession(c, sessions)
  if (found === 'none') return sendDialogue(c, loginPage(), "'self'")
  if (found === 'ended') return sendDialogue(c, loginPage(endedSession), "'self'")
  const { session, token } = found
  if (session.isAdmin && session.isPartial) return sendDialogue(c, codePage(), "'self'")
  const refusal = refusalOf(session)
  if (refusal !== undefined) return sendDialogue(c, refusedPage(refusal, 403), "'self'")
  enter(c, session)
  const isOwnRefresh = queryOf(c).has('refresh')
  const page = statusPage(await read(callContext(c)), session.caller.identityName)
  if (!isOwnRefresh) keepToken(c, token)
  c.env.outgoing.setHeader('refresh', `${REFRESH_SECONDS}; url=/status?refresh`)
  return sendDialogue(c, page, "'self'")
}

const refusalOf = ({ isAdmin, isPartial, caller }: Session): string | undefined => {
  if (!isAdmin) return `${caller.identityName} is not an administrator.`
  return isPartial ? 'The session lacks its second factor.' : undefined
}

function enter({ env }: RequestContext, session: Session): void {
  env.session = session
}

/** The same as the page, for programs. Times are in ISO 8601. */
export function renderStatus(status: NetworkStatus): object {
  const { atMs, answeredBy, replicas, follows, offlineRouters } = status
  const data = {
    at: timeOf(atMs),
    answeredBy,
    attention: concernsOf(status),
    replicas: replicas.map(({ service, address, problem, process }) => {
      if (!process) return { service, address, answers: false, problem }
      const { version, revision, nodeVersion, startedAtMs, position, pool, bus, routers } = process
      return {
        ...{ service, address, answers: true, process: nameOf(process), version, revision, nodeVersion },
        startedAt: timeOf(startedAtMs),
        ...(isService(service) && { position, bus }),
        ...(pool && { pool }),
        ...(routers !== undefined && { connectedRouters: routers }),
        queues: process.queues.map(({ refusedAtMs, ...queue }) => ({
          ...queue,
          lastRefusedAt: refusedAtMs === undefined ? null : timeOf(refusedAtMs),
        })),
        slowRequests: process.slowRequests.map(({ atMs, ...request }) => ({ at: timeOf(atMs), ...request })),
        refusals: process.refusals.map(({ atMs, ...refusal }) => ({ at: timeOf(atMs), ...refusal })),
      }
    }),
    positions: follows.map(({ replica: { service, process }, schema, position, head, lateMs, silentMs }) => ({
      service,
      process: process && nameOf(process),
      schema,
      position: position ?? null,
      head: head ?? null,
      lagMs: Math.round(lateMs),
      silentMs: silentMs ?? null,
    })),
    certificates: certificatesOf(status).map(({ name, expiresAtMs }) => ({
      name,
      expiresAt: timeOf(expiresAtMs),
      daysLeft: daysUntil(expiresAtMs, atMs),
    })),
    offlineRouters: offlineRouters ?? null,
  }
  return data
}

const timeOf = (ms: number): string => new Date(ms).toISOString()
