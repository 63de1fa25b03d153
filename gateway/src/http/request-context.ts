import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Caller, type Context, type FaultCode, type Positions, traceparentOf } from '@overlay/rpc'
import type { Session } from '../cache/session.js'
import { clientAddressOf } from './connections.js'
import { requestId } from './ids.js'

/** From the path, in the words of the operation table. */
export type Params = Readonly<Record<'id' | 'serviceId', string>>

/** One request under way, as far as the frame has come with it. What costs is made when somebody asks for it. */
export interface RequestContext {
  readonly api: string
  readonly path: string
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly requestId: string
  /** IP address of the client. */
  readonly sourceAddress: string
  session: Session | undefined
  /** Why it was refused, for log and metrics. */
  refusal: FaultCode | undefined
  /** What nobody expected, for the log only. */
  broken: unknown
  query(): URLSearchParams
  /** For calls to services. */
  context(): Context
  /** The same with a deadline of its own: for the pages of a long answer. */
  fresh(): Context
  /** Nobody waits any more: calls under way are given up. */
  giveUp(reason: unknown): void
  /** For the log; undefined while no service has been asked. */
  traceparent(): string | undefined
}

const nobody: Caller = { identityId: '', apiSessionId: '', isAdmin: false, configTypes: [] }

export function openRequestContext(
  api: string,
  path: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  positions: () => Positions,
  limitMs: number,
): RequestContext {
  const startedMs = Date.now()
  let search: URLSearchParams | undefined
  let abort: AbortController | undefined
  let context: Context | undefined
  let traceparent: string | undefined
  let gone: unknown

  const from = (caller: Caller, beginMs: number): Context => {
    abort ??= new AbortController()
    if (gone !== undefined) abort.abort(gone)
    traceparent ??= traceparentOf(firstOf(incoming.headers.traceparent))
    return {
      requestId: c.requestId,
      traceparent,
      caller,
      sourceAddress: c.sourceAddress,
      deadline: new Date(beginMs + limitMs),
      signal: abort.signal,
      positions: positions(),
    }
  }
  const c: RequestContext = {
    api,
    path,
    incoming,
    outgoing,
    requestId: requestId(),
    sourceAddress: clientAddressOf(incoming),
    session: undefined,
    refusal: undefined,
    broken: undefined,
    query() {
      if (!search) {
        const { url = '' } = incoming
        const mark = url.indexOf('?')
        search = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1))
      }
      return search
    },
    context() {
      context ??= from(c.session?.caller ?? nobody, startedMs)
      return context
    },
    fresh: () => from(c.session?.caller ?? nobody, Date.now()),
    giveUp(reason) {
      gone ??= reason
      abort?.abort(reason)
    },
    traceparent: () => traceparent,
  }
  return c
}

const firstOf = (header: string | readonly string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : header?.[0]
