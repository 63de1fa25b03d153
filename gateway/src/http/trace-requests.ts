import { type Failure, type Tracing, validTraceparent } from '@overlay/rpc'
import type { Exchange, MountedApi } from './exchange.js'

/** Answers a request as the span of it. */
export type TraceRequest = <T>(exchange: Exchange, answer: () => T) => T

/** Continues the traces of clients, or begins them. A span is named by method and route, which contain no ids. */
export function traceRequests(tracing: Tracing, apis: readonly MountedApi[]): TraceRequest {
  const roots = new Map(apis.map(({ api, root }) => [api, root]))

  function outcomeOf({ incoming, outgoing, api, operation, requestId }: Exchange) {
    const { method = '' } = incoming
    const [, path] = operation.split(' ')
    const route = path === undefined ? undefined : `${roots.get(api) ?? ''}${path}`
    return {
      name: route === undefined ? method : `${method} ${route}`,
      attributes: {
        'http.request.method': method,
        'url.scheme': 'https',
        'network.protocol.version': incoming.httpVersion,
        'http.response.status_code': outgoing.statusCode,
        ...(route !== undefined && { 'http.route': route }),
        ...(api !== '' && { 'overlay.api': api }),
        ...(requestId !== '' && { 'overlay.request_id': requestId }),
      },
    }
  }

  return (exchange, answer) => {
    const { incoming, outgoing } = exchange
    const { method = '', headers } = incoming
    const { traceparent } = headers
    const given = validTraceparent(Array.isArray(traceparent) ? traceparent[0] : traceparent)
    const span = tracing.request(method, given)
    exchange.traceparent = span.traceparent
    outgoing.once('close', () => span.end(outcomeOf(exchange), failureOf(exchange)))
    return span.run(answer)
  }
}

function failureOf({ outgoing, faultCode }: Exchange): Failure | undefined {
  if (!outgoing.writableFinished) return { code: faultCode ?? 'aborted', isError: false }
  if (faultCode === undefined) return undefined
  return { code: faultCode, isError: outgoing.statusCode >= 500 }
}
