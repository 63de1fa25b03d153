import {
  DataState,
  DataStateChangeSet,
  encodeText,
  fieldHead,
  type Headers,
  type LargeOutgoing,
  ModelAction,
  ModelEvent,
  type ModelPublicKey,
  modelHeader,
  modelType,
  type Outgoing,
} from '@overlay/channel'
import type { Revocation } from '../domain/api-session.js'

/** A full state of policy: what a router may know, as far as it follows from policies. */
export interface PolicyModel {
  /** Encoded members `events` of DataState. */
  readonly parts: readonly Uint8Array[]
  readonly timeline: string
  readonly index: number
}

export const keyEvent = (action: ModelAction, publicKey: ModelPublicKey): ModelEvent =>
  ModelEvent.fromPartial({ action, isSynthetic: true, publicKey })

/** wire: a router of 1.6 or 1.7 reads no type, and does nothing with a revocation. */
export const revocationEvent = (id: string, { untilMs }: Pick<Revocation, 'untilMs'>): ModelEvent =>
  ModelEvent.fromPartial({
    action: ModelAction.CREATE,
    revocation: {
      id,
      type: 'API_SESSION',
      expiresAt: {
        seconds: BigInt(Math.floor(untilMs / 1000)),
        nanos: Math.floor(untilMs % 1000) * 1_000_000,
      },
    },
  })

export const withdrawnRevocation = (id: string): ModelEvent =>
  ModelEvent.fromPartial({ action: ModelAction.DELETE, revocation: { id } })

/** Encoded keys and revocations: members `events` of DataState, and `changes` of DataStateChangeSet. */
export interface OwnEvents {
  readonly events: readonly Uint8Array[]
  readonly changes: readonly Uint8Array[]
}

export const encodeOwn = (events: readonly ModelEvent[]): OwnEvents => ({
  events: [DataState.encode(DataState.fromPartial({ events: [...events] })).finish()],
  changes: [DataStateChangeSet.encode(DataStateChangeSet.fromPartial({ changes: [...events] })).finish()],
})

export const joinOwn = (...all: readonly OwnEvents[]): OwnEvents => ({
  events: all.flatMap(({ events }) => events),
  changes: all.flatMap(({ changes }) => changes),
})

export interface FullState {
  readonly model: PolicyModel
  readonly own: OwnEvents
  readonly timelineId: string
}

/** Of protobuf messages that follow each other, the lists are joined. */
const dataStateParts = ({ model, own, timelineId }: FullState): Uint8Array[] => [
  ...model.parts,
  ...own.events,
  DataState.encode(DataState.fromPartial({ endIndex: BigInt(model.index), timelineId })).finish(),
]

export const fullState = (state: FullState, subscriptionId: string): LargeOutgoing => ({
  type: modelType.dataState,
  headers: subscriptionHeaders(subscriptionId),
  parts: dataStateParts(state),
})

/** @param parts encoded members `changes` */
export const changeSet = (
  parts: readonly Uint8Array[],
  index: number,
  previousIndex: number,
  subscriptionId: string,
): LargeOutgoing => ({
  type: modelType.changeSet,
  headers: subscriptionHeaders(subscriptionId),
  parts: [
    ...parts,
    DataStateChangeSet.encode(
      DataStateChangeSet.fromPartial({ index: BigInt(index), previousIndex: BigInt(previousIndex) }),
    ).finish(),
  ],
})

/** Without the id of a subscription: a router that is about to subscribe again takes it, too. */
export const syntheticSet = ({ changes }: OwnEvents): LargeOutgoing => ({
  type: modelType.changeSet,
  parts: [...changes, SYNTHETIC],
})

/** The same as one write. */
export const syntheticChange = (events: readonly ModelEvent[]): Outgoing => {
  const { type, parts } = syntheticSet(encodeOwn(events))
  return { type, body: Buffer.concat(parts) }
}

const SYNTHETIC = DataStateChangeSet.encode(DataStateChangeSet.fromPartial({ isSynthetic: true })).finish()

const STATE = 1 // the number of a field of ValidateDataStateRequest

/** Without the flag `fix`: a router that repairs itself forgets its timeline, and needs a full state all the same. */
export function validation(state: FullState): LargeOutgoing {
  const parts = dataStateParts(state)
  const bytes = parts.reduce((sum, part) => sum + part.length, 0)
  return { type: modelType.validate, parts: [fieldHead(STATE, bytes), ...parts] }
}

/** wire: routers before 2.0 have no id, and read no header. */
const subscriptionHeaders = (subscriptionId: string): Headers =>
  new Map(subscriptionId ? [[modelHeader.subscriptionId, encodeText(subscriptionId)]] : [])
