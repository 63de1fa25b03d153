import { randomUUID } from 'node:crypto'
import {
  CreateTerminatorResult,
  CreateTunnelCircuitV2Request,
  CreateTunnelCircuitV2Response,
  CreateTunnelTerminatorV2Request,
  CreateTunnelTerminatorV2Response,
  edgeType,
  type Message,
  TerminatorPrecedence,
} from '@overlay/channel'
import { type CircuitEnd, openCircuitEnd, type Peer } from './circuit-end.js'
import { isGranted } from './model-access.js'
import type { RouterModel } from './router-model.js'
import type { RouterParts } from './sdk-channel.js'
import type { DialedCircuit, TunnelHost } from './terminators.js'

/** A router that is an identity. It hosts each service that its model lets it bind, and echoes. */
export interface Tunneler {
  /** Dials a service, sends bytes and resolves with as many that it receives. Throws with the text of the refusal. */
  exchange(serviceName: string, sent: Buffer): Promise<Buffer>
  /** Ids of hosted services whose terminator exists. */
  hosted(): string[]
  /** Follows the model. */
  verify(): void
  /** The answer to the creation of a terminator. */
  created(message: Message): void
}

export interface TunnelerOptions {
  readonly routerId: string
  readonly model: RouterModel
  readonly parts: Pick<
    RouterParts,
    'controllers' | 'forwarder' | 'terminators' | 'closeWaitMs' | 'onCircuitEnd'
  >
}

const CIRCUIT_MS = 30_000

export function openTunneler({ routerId, model, parts }: TunnelerOptions): Tunneler {
  const { controllers, forwarder, terminators, closeWaitMs, onCircuitEnd } = parts
  /** Terminators by service. */
  const own = new Map<
    string,
    { readonly id: string; isEstablished: boolean; readonly circuits: Set<CircuitEnd> }
  >()

  function open(
    { circuitId, controllerId, address }: Omit<DialedCircuit, 'peerData'>,
    isIngress: boolean,
    peer: Peer,
  ) {
    const onClosed = (): void => onCircuitEnd(circuitId, controllerId, isIngress)
    return openCircuitEnd({ circuitId, address, isIngress, peer, forwarder, closeWaitMs, onClosed })
  }

  function host(serviceId: string): void {
    const id = randomUUID()
    const circuits = new Set<CircuitEnd>()
    own.set(serviceId, { id, isEstablished: false, circuits })
    const tunnel: TunnelHost = {
      async dial(circuit) {
        const end: CircuitEnd = open(circuit, false, {
          deliver: ({ data, headers }) => end.push({ data, headers }),
          ended: () => void circuits.delete(end),
        })
        circuits.add(end)
      },
    }
    terminators.tunnels.set(id, tunnel)
    controllers.any()?.channel.send({
      type: edgeType.createTunnelTerminatorV2,
      body: CreateTunnelTerminatorV2Request.encode({
        serviceId,
        address: id,
        peerData: new Map(),
        cost: 0,
        precedence: TerminatorPrecedence.DEFAULT,
        instanceId: '',
        instanceSecret: Buffer.alloc(0),
        startTime: BigInt(Date.now()),
      }).finish(),
    })
  }

  function lose(serviceId: string): void {
    const lost = own.get(serviceId)
    if (!lost) return
    own.delete(serviceId)
    terminators.tunnels.delete(lost.id)
    for (const end of [...lost.circuits]) end.close('bind access lost')
    const body = Buffer.from(lost.id)
    controllers.any()?.channel.send({ type: edgeType.removeTunnelTerminator, body })
  }

  return {
    hosted: () => [...own].flatMap(([serviceId, { isEstablished }]) => (isEstablished ? [serviceId] : [])),
    verify() {
      for (const serviceId of new Set([...own.keys(), ...model.contents.service.keys()])) {
        const mayBind = isGranted(model.contents, routerId, serviceId, 'bind')
        if (mayBind && !own.has(serviceId)) host(serviceId)
        if (!mayBind) lose(serviceId)
      }
    },
    created({ body }) {
      const { terminatorId, result } = CreateTunnelTerminatorV2Response.decode(body)
      for (const [serviceId, terminator] of own) {
        if (terminator.id !== terminatorId) continue
        terminator.isEstablished = result === CreateTerminatorResult.SUCCESS
        if (!terminator.isEstablished) lose(serviceId)
      }
    },
    async exchange(serviceName, sent) {
      const controller = controllers.any()
      if (!controller) throw new Error('no controller')
      const body = CreateTunnelCircuitV2Request.encode({
        serviceName,
        terminatorInstanceId: '',
        peerData: new Map(),
      }).finish()
      const request = { type: edgeType.createTunnelCircuitV2, body }
      const reply = await controller.channel.request(request, CIRCUIT_MS)
      if (reply.type !== edgeType.createTunnelCircuitV2Response) throw new Error(reply.body.toString())
      const circuit = { ...CreateTunnelCircuitV2Response.decode(reply.body), controllerId: controller.id }
      return new Promise((resolve, reject) => {
        const received: Buffer[] = []
        const end = open(circuit, true, {
          deliver({ data }) {
            received.push(data)
            const all = Buffer.concat(received)
            if (all.length < sent.length) return
            resolve(all)
            void end.finish()
          },
          ended: (reason) => reject(new Error(reason)),
        })
        void end.push({ data: sent, headers: [] })
      })
    },
  }
}
