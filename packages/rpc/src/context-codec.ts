import { Metadata } from '@grpc/grpc-js'
import { asBuffer } from './as-buffer.js'
import type { Context } from './context.js'
import { CallContext } from './gen/overlay/stream/v1/stream.js'

export function contextToMessage({
  requestId,
  traceparent,
  caller,
  sourceAddress,
  positions,
}: Context): CallContext {
  const { configTypes, ...rest } = caller
  return { requestId, traceparent, ...rest, configTypes: [...configTypes], sourceAddress, positions }
}

/** The context of a call that this process answers. */
export function contextFromMessage(message: CallContext, limitMs: number, signal: AbortSignal): Context {
  const { requestId, traceparent, sourceAddress, positions } = message
  const { identityId, identityName, apiSessionId, isAdmin, configTypes } = message
  return {
    requestId,
    traceparent,
    caller: { identityId, identityName, apiSessionId, isAdmin, configTypes },
    sourceAddress,
    deadline: Number.isFinite(limitMs) ? new Date(Date.now() + limitMs) : undefined,
    positions,
    signal,
  }
}

const KEY = 'context-bin'

export function toMetadata(context: Context): Metadata {
  const metadata = new Metadata()
  metadata.set(KEY, asBuffer(CallContext.encode(contextToMessage(context)).finish()))
  return metadata
}

export function fromMetadata(metadata: Metadata, limitMs: number, signal: AbortSignal): Context {
  const [bytes] = metadata.get(KEY)
  if (!Buffer.isBuffer(bytes)) throw new Error('call without a context')
  return contextFromMessage(CallContext.decode(bytes), limitMs, signal)
}
