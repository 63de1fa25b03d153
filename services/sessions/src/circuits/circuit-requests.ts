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
import { boundedLines, noteFullQueue } from '@overlay/platform/process'
import { AccessRefused } from '../access/router-access.js'
import { answer, refused } from '../control/answers.js'
import { type Handler, onMessage } from '../control/handlers.js'
import type { RouterChannel } from '../control/router-channel.js'
import { traced } from '../control/traced.js'
import type { Circuits, OpenedCircuit } from './circuits.js'
import type { CircuitDeps } from './deps.js'

type RequestDeps = Pick<CircuitDeps, 'checkAccess' | 'log'> & Pick<Circuits, 'open' | 'end'>

interface Asked {
  readonly sessionToken: string
  readonly apiSessionToken: string
  readonly fingerprints: readonly string[]
  readonly terminatorInstanceId: string
  readonly peerData: ReadonlyMap<number, Buffer>
}

/** Requests of one router under way. More are refused: a slow host holds its requests for seconds. */
const MAX_UNDER_WAY = 256

/**
 * Requests of routers for circuits. They run beside the handlers of messages, which are few at a time: a request waits
 * for answers that arrive on the same channel.
 */
export function circuitRequests({ checkAccess, open, end, log }: RequestDeps): readonly Handler[] {
  const underWay = new Map<string, number>()
  const noteRefusal = boundedLines(log, 'circuit refused')

  async function create(
    asked: Asked,
    { routerId, channel }: RouterChannel,
    encode: (circuit: OpenedCircuit) => Outgoing,
  ): Promise<Outgoing> {
    const { sessionToken, apiSessionToken, fingerprints } = asked
    const claim = { routerId, sessionToken, apiSessionToken, fingerprints, type: 'Dial' as const }
    const { terminatorInstanceId: instanceId, peerData } = asked
    let facts: object = { routerId }
    const opening = async (): Promise<OpenedCircuit> => {
      const { sessionId, identityId, serviceId } = await checkAccess(claim)
      facts = { routerId, sessionId, identityId, serviceId }
      return open({ routerId, sessionId, identityId, serviceId, instanceId, peerData })
    }
    const circuit = await opening().catch((err: unknown) => {
      if (err instanceof AccessRefused) noteRefusal(routerId, { ...facts, reason: err.message })
      throw err
    })
    try {
      channel.closed.throwIfAborted()
      return encode(circuit)
    } catch (err) {
      await end(circuit.id) // its router does not learn of it
      throw err
    }
  }

  async function respond(
    message: Message,
    router: RouterChannel,
    asked: Asked,
    encode: (circuit: OpenedCircuit) => Outgoing,
  ): Promise<void> {
    const { routerId, channel } = router
    const others = underWay.get(routerId) ?? 0
    if (others >= MAX_UNDER_WAY) {
      noteFullQueue('circuits')
      channel.reply(
        message,
        refused(new AccessRefused(edgeErrorCode.internal, 'too many circuits at a time')),
      )
      return
    }
    underWay.set(routerId, others + 1)
    try {
      await answer(router, message, refused, () =>
        traced('CreateCircuit', () => create(asked, router, encode)),
      )
    } catch (err) {
      if (!channel.closed.aborted) log.error({ err, routerId }, 'circuit not set up')
    } finally {
      const left = (underWay.get(routerId) ?? 1) - 1
      if (left > 0) underWay.set(routerId, left)
      else underWay.delete(routerId)
    }
  }

  return [
    {
      type: edgeType.createCircuitV2,
      prepare(message, router) {
        const asked = askedIn(message)
        return () => {
          if (asked) void respond(message, router, asked, response)
          else router.channel.reply(message, malformed)
        }
      },
    },
    onMessage(edgeType.createCircuit, CreateCircuitRequest, (asked, message, router) => {
      void respond(message, router, asked, responseV1)
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

const responseV1 = ({ id, address, peerData, tags }: OpenedCircuit): Outgoing => ({
  type: edgeType.createCircuitResponse,
  body: CreateCircuitResponse.encode({
    circuitId: id,
    address,
    peerData: new Map(peerData),
    tags: new Map(Object.entries(tags)),
  }).finish(),
})

const malformed = refused(new AccessRefused(edgeErrorCode.internal, 'malformed request'))
