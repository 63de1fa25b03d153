import { ServerInterceptingCall, type ServerInterceptor, status } from '@grpc/grpc-js'
import type { CallersOf } from './method-table.js'
import type { PeerName } from './peer-name.js'

/** A connection that was refused, or a call of a peer that may not make it. */
export interface Refusal {
  readonly reason: string
  /** The path of the method. Absent: the connection was refused. */
  readonly method?: string
  readonly caller?: PeerName
  /** Of the certificate of a refused connection. */
  readonly names?: string | undefined
}

export type Refused = (refusal: Refusal) => void

/** Decides about the calls that a process receives. */
export interface Admission {
  /** The service that is called. */
  readonly host: PeerName
  readonly callersOf: CallersOf
  readonly refused: Refused
}

/** Undefined: `caller` may call the method. Otherwise the text of the refusal, which has been reported. */
export function checkCaller(
  { host, callersOf, refused }: Admission,
  caller: PeerName,
  method: string,
): string | undefined {
  if (callersOf(host, method)?.includes(caller)) return undefined
  refused({ reason: 'caller', method, caller })
  return `${caller} may not call ${method}`
}

/** Checks the calls of gRPC that `caller` makes, before their request is read. */
export const interceptCalls =
  (admission: Admission, caller: PeerName): ServerInterceptor =>
  ({ path }, call) =>
    new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata(metadata, pass) {
            const details = checkCaller(admission, caller, path)
            if (details === undefined) pass(metadata)
            else call.sendStatus({ code: status.PERMISSION_DENIED, details })
          },
        }),
    })
