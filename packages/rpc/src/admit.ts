import { ServerInterceptingCall, type ServerInterceptor, type ServerUnaryCall, status } from '@grpc/grpc-js'
import type { CallersOf } from './callers.js'
import { CallServiceService } from './gen/overlay/stream/v1/stream.js'
import { type PeerName, peerNames } from './peer-name.js'
import type { Refused } from './refusals.js'

const KEY = 'caller'

/** Decides about the calls that a process receives. */
export interface Admission {
  /** The service that is called. */
  readonly host: PeerName
  readonly callersOf: CallersOf
  readonly refused: Refused
}

/** Refuses calls that `caller` may not make, before their request is read. */
export const admit =
  ({ host, callersOf, refused }: Admission, caller: PeerName): ServerInterceptor =>
  ({ path }, call) => {
    if (path === CallServiceService.calls.path)
      return new ServerInterceptingCall(call, {
        start: (next) =>
          next({
            onReceiveMetadata(metadata, pass) {
              metadata.set(KEY, caller)
              pass(metadata)
            },
          }),
      })
    if (callersOf(host, path)?.has(caller)) return new ServerInterceptingCall(call)
    return new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata() {
            refused({ reason: 'caller', method: path, caller })
            call.sendStatus({ code: status.PERMISSION_DENIED, details: refusalOf(caller, path) })
          },
        }),
    })
  }

export const refusalOf = (caller: PeerName, path: string): string => `${caller} may not call ${path}`

/** The caller of a stream of multiplexed calls: of each of them, the caller of the connection. */
export function callerOf({ metadata }: Pick<ServerUnaryCall<unknown, unknown>, 'metadata'>): PeerName {
  const [value] = metadata.get(KEY)
  const caller = peerNames.find((name) => name === value)
  if (!caller) throw new Error('stream without a caller')
  return caller
}
