import {
  CreateCircuitRequest,
  CreateCircuitResponse,
  circuitRequestHeader,
  circuitResponseHeader,
  ctrlType,
  decodeBytesMap,
  decodeTextList,
  edgeErrorCode,
  edgeType,
  encodeBytesMap,
  encodeText,
  encodeTextMap,
  MalformedHeader,
  type Message,
  type Outgoing,
} from '@overlay/channel'
import { boundedLines } from '@overlay/process'
import { type Handler, onMessage } from '../channel/handlers.js'
import { refused } from '../channel/replies.js'
import type { RouterChannel } from '../channel/router-channel.js'
import { type AccessClaim, AccessRefused, type DialClaim } from '../domain/router-access.js'
import { UNITS_PER_SIGNATURE } from '../limits.js'
import { openDials } from './answer-dial.js'
import type { CircuitDeps } from './circuit-deps.js'
import type { Circuits, OpenedCircuit } from './circuits.js'

type RequestDeps = Pick<CircuitDeps, 'checkAccess' | 'checkDial' | 'log'> & Pick<Circuits, 'open' | 'end'>

interface Asked {
  readonly sessionToken: string
  readonly apiSessionToken: string
  readonly fingerprints: readonly string[]
  readonly terminatorInstanceId: string
  readonly peerData: ReadonlyMap<number, Buffer>
  readonly spend?: AccessClaim['spend']
  /** Of a client that dials without a session. */
  readonly dial?: Pick<DialClaim, 'identityId' | 'serviceId'>
}

/** Requests of routers for circuits of their clients. */
export function handleCircuitRequests(deps: RequestDeps): readonly Handler[] {
  const { checkAccess, checkDial, open, end, log } = deps
  const dial = openDials({ end, log })
  const noteRefusal = boundedLines(log, 'circuit refused')

  async function create(asked: Asked, { routerId }: RouterChannel): Promise<OpenedCircuit> {
    const { sessionToken, apiSessionToken, fingerprints, spend, dial: claimed } = asked
    const claim = { routerId, sessionToken, apiSessionToken, fingerprints, type: 'Dial', spend } as const
    const { terminatorInstanceId: instanceId, peerData } = asked
    let facts: object = { routerId }
    try {
      const { sessionId, identityId, serviceId } = await (claimed
        ? checkDial({ routerId, accessToken: apiSessionToken, fingerprints, ...claimed })
        : checkAccess(claim))
      facts = { routerId, sessionId, identityId, serviceId }
      return await open({ routerId, sessionId, identityId, serviceId, instanceId, peerData })
    } catch (err) {
      if (err instanceof AccessRefused) noteRefusal(routerId, { ...facts, reason: err.message })
      throw err
    }
  }

  const respond = (
    message: Message,
    router: RouterChannel,
    asked: Asked,
    encode: (circuit: OpenedCircuit) => Outgoing,
  ): void => dial(message, router, { name: 'CreateCircuit', open: () => create(asked, router), encode })

  return [
    {
      type: edgeType.createCircuitV2,
      prepare(message, router, spend) {
        const asked = askedIn(message)
        return () => {
          if (asked) respond(message, router, { ...asked, spend }, response)
          else router.channel.reply(message, refused(malformed, router))
        }
      },
    },
    {
      // differs: an id that the router proposes for the circuit is not used, because it may be that of another one
      type: edgeType.createCircuitV3,
      prepare(message, router, spend) {
        const asked = askedIn(message)
        const [identityId, serviceId] = [
          message.headers.get(circuitRequestHeader.identityId)?.toString() ?? '',
          message.headers.get(circuitRequestHeader.serviceId)?.toString() ?? '',
        ]
        spend?.(UNITS_PER_SIGNATURE) // it may write a session
        return () => {
          if (asked) respond(message, router, { ...asked, dial: { identityId, serviceId } }, responseV3)
          else router.channel.reply(message, refused(malformed, router))
        }
      },
    },
    onMessage(edgeType.createCircuit, CreateCircuitRequest, (asked, message, router, spend) => {
      respond(message, router, { ...asked, spend }, responseV1)
    }),
    {
      type: ctrlType.circuitRequest,
      prepare: (message, { channel }) => {
        // differs: in the original a router opens circuits to any service, without a session
        const body = encodeText('circuits without a session are not supported')
        return () => channel.reply(message, { type: ctrlType.circuitFailed, body })
      },
    },
  ]
}

/**
 * Undefined: a list or map in it is beyond the limits. The channel stays: most of these values come from clients of the
 * router, and one client must not cut off the others.
 */
function askedIn({ headers }: Message): Asked | undefined {
  const text = (key: number): string => headers.get(key)?.toString() ?? ''
  const [fingerprints, peerData] = [
    headers.get(circuitRequestHeader.fingerprints),
    headers.get(circuitRequestHeader.peerData),
  ]
  try {
    return {
      sessionToken: text(circuitRequestHeader.sessionToken),
      apiSessionToken: text(circuitRequestHeader.apiSessionToken),
      terminatorInstanceId: text(circuitRequestHeader.terminatorInstanceId),
      fingerprints: fingerprints ? decodeTextList(fingerprints) : [],
      peerData: peerData ? decodeBytesMap(peerData) : new Map(),
    }
  } catch (err) {
    if (err instanceof MalformedHeader) return undefined
    throw err
  }
}

const response = ({ id, address, peerData, tags }: OpenedCircuit): Outgoing => ({
  type: edgeType.createCircuitV2Response,
  headers: new Map([
    [circuitResponseHeader.circuitId, encodeText(id)],
    [circuitResponseHeader.address, encodeText(address)],
    [circuitResponseHeader.peerData, encodeBytesMap(peerData)],
    [circuitResponseHeader.tags, encodeTextMap(new Map(Object.entries(tags)))],
  ]),
})

const responseV3 = (circuit: OpenedCircuit): Outgoing => ({
  ...response(circuit),
  type: edgeType.createCircuitV3Response,
})

const responseV1 = ({ id, address, peerData, tags }: OpenedCircuit): Outgoing => ({
  type: edgeType.createCircuitResponse,
  body: CreateCircuitResponse.encode({
    circuitId: id,
    address,
    peerData: new Map(peerData),
    tags: new Map(Object.entries(tags)),
  }).finish(),
})

const malformed = new AccessRefused(edgeErrorCode.internal, 'malformed request')
