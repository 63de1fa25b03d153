import type { Message, Outgoing } from '@overlay/channel'
import { DELIVERY_GRACE_MS, DELIVERY_MS, MAX_BUS_BYTES } from '../limits.js'

/** As JSON; bytes are base64. */
interface EncodedMessage {
  readonly type: number
  readonly headers: readonly (readonly [number, string])[]
  readonly body: string
}

/** A message to a router of another replica. */
export interface RouterCommand {
  readonly id: string
  /** The process that wants the answer. */
  readonly from: string
  readonly routerId: string
  readonly message: EncodedMessage
  /** For the reply of the router. 0: there is none. */
  readonly timeoutMs: number
}

export type CommandAnswer =
  | { readonly reply: EncodedMessage | null }
  | { readonly failure: string; readonly isOffline: boolean }

export interface CommandOutcome {
  readonly answer?: CommandAnswer
  /** The answer does not fit on the bus: it is in the database. */
  readonly isStored?: true
}

/** On the bus. Without an outcome: the command has arrived. */
export interface CommandReport extends CommandOutcome {
  readonly id: string
}

/** A command that waits in the database is executed within this time. */
export const deliveredWithinMs = ({ timeoutMs }: RouterCommand): number => timeoutMs || DELIVERY_MS
/** So long its sender waits for the answer. */
export const waitedForMs = (command: RouterCommand): number => deliveredWithinMs(command) + DELIVERY_GRACE_MS
/** Servers drop what is larger. */
export const fitsBus = (message: object): boolean => JSON.stringify(message).length <= MAX_BUS_BYTES

// ids may have characters that subjects may not have
const word = (text: string): string => Buffer.from(text).toString('base64url')

export const commandSubject = (replicaId: string): string =>
  `overlay.sessions.router-command.${word(replicaId)}`
export const reportSubject = (from: string): string => `overlay.sessions.router-answer.${word(from)}`

export const encodeRouterMessage = ({ type, headers, body }: Outgoing): EncodedMessage => ({
  type,
  headers: [...(headers ?? [])].map(([key, value]) => [key, value.toString('base64')] as const),
  body: Buffer.from(body ?? []).toString('base64'),
})

/** A reply that has passed between replicas has no sequence. */
export const decodeRouterMessage = ({ type, headers, body }: EncodedMessage): Message => ({
  type,
  sequence: 0,
  headers: new Map(headers.map(([key, value]) => [key, Buffer.from(value, 'base64')] as const)),
  body: Buffer.from(body, 'base64'),
})
