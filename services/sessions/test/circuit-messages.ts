import {
  CircuitConfirmation,
  circuitRequestHeader,
  circuitResponseHeader,
  ctrlType,
  decodeBytesMap,
  decodeTextMap,
  decodeUint32,
  edgeType,
  encodeBytesMap,
  encodeText,
  encodeTextList,
  errorHeader,
  Fault,
  type FaultSubject,
  type Outgoing,
} from '@overlay/channel'
import type { CircuitsConcern } from '../src/circuits/circuits-concern.js'
import { ask } from './circuit-replicas.js'
import type { FakeRouter } from './circuit-routers.js'

export interface Dial {
  readonly sessionToken?: string
  readonly instanceId?: string
  readonly peerData?: ReadonlyMap<number, Buffer>
}

export const circuitRequest = ({
  sessionToken = 'token of s1',
  instanceId = '',
  peerData = new Map(),
}: Dial = {}): Outgoing => ({
  type: edgeType.createCircuitV2,
  headers: new Map([
    [circuitRequestHeader.sessionToken, encodeText(sessionToken)],
    [circuitRequestHeader.apiSessionToken, encodeText('')],
    [circuitRequestHeader.fingerprints, encodeTextList(['f'])],
    [circuitRequestHeader.terminatorInstanceId, encodeText(instanceId)],
    [circuitRequestHeader.peerData, encodeBytesMap(peerData)],
  ]),
})

export interface DialAnswer {
  readonly circuitId: string
  readonly address: string
  readonly peerData: ReadonlyMap<number, Buffer>
  readonly tags: Readonly<Record<string, string>>
}

export interface DialRefusal {
  readonly code: number
  readonly text: string
}

export function answerIn({
  type,
  headers = new Map(),
  body = Buffer.alloc(0),
}: Outgoing): DialAnswer | DialRefusal {
  const value = (key: number): Buffer => headers.get(key) ?? Buffer.alloc(0)
  if (type === edgeType.error) return { code: decodeUint32(value(errorHeader.code)), text: String(body) }
  return {
    circuitId: value(circuitResponseHeader.circuitId).toString(),
    address: value(circuitResponseHeader.address).toString(),
    peerData: decodeBytesMap(value(circuitResponseHeader.peerData)),
    tags: Object.fromEntries(decodeTextMap(value(circuitResponseHeader.tags))),
  }
}

/** A circuit for a client of the router. Throws if it is refused. */
export async function dial(
  replica: CircuitsConcern,
  router: FakeRouter,
  options?: Dial,
): Promise<DialAnswer> {
  const answer = answerIn(await ask(replica, router, circuitRequest(options)))
  if ('code' in answer) throw new Error(`${answer.code}: ${answer.text}`)
  return answer
}

export const fault = (subject: FaultSubject, id: string): Outgoing => ({
  type: ctrlType.fault,
  body: Fault.encode({ subject, id, iteration: 0 }).finish(),
})

export const confirmation = (idleSeconds: Readonly<Record<string, number>>): Outgoing => ({
  type: ctrlType.circuitConfirmation,
  body: CircuitConfirmation.encode({
    circuitIds: Object.keys(idleSeconds),
    idleTimes: new Map(Object.entries(idleSeconds).map(([id, s]) => [id, BigInt(s) * 1_000_000_000n])),
  }).finish(),
})
