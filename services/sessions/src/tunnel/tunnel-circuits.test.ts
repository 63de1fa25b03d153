import { duplexPair } from 'node:stream'
import {
  type Channel,
  CreateTunnelCircuitV2Request,
  CreateTunnelCircuitV2Response,
  ctrlType,
  edgeType,
  type Message,
  openChannel,
} from '@overlay/channel'
import pino from 'pino'
import { expect, test } from 'vitest'
import type { RouterChannel } from '../channel/router-channel.js'
import type { OpenedCircuit } from '../circuits/circuits.js'
import { NO_FEATURES } from '../domain/router-features.js'
import { tunnelCircuits } from './tunnel-circuits.js'

const circuit: OpenedCircuit = { id: 'c1', address: 'in', peerData: new Map(), tags: {} }

/** A tunneling router, connected to a controller that sets up circuits with `open`. */
function connect(open: (toRouter: Channel) => Promise<OpenedCircuit>) {
  const ended: string[] = []
  const [ownSide, routerSide] = duplexPair()
  const handlers = tunnelCircuits({
    routerSessions: { of: async () => ({ identityId: 'r1' }), isNews: () => false } as never,
    session: async () => ({ id: 's1' }) as never,
    services: { named: async () => ({ id: 'wiki' }) as never, withId: async () => ({}) as never },
    circuits: {
      open: () => open(channel),
      end: async (id) => ended.push(id) > 0,
    },
    log: pino({ level: 'silent' }),
  })
  const channel: Channel = openChannel(ownSide, {
    onMessage: (message) =>
      handlers
        .find(({ type }) => type === message.type)
        ?.prepare(message, {
          ...({ routerId: 'r1', channel, features: NO_FEATURES } as RouterChannel),
        })(),
  })
  const router = openChannel(routerSide, {
    onMessage: (message) => router.reply(message, { type: ctrlType.routeResult }),
  })
  return {
    ended,
    channel,
    dial: (): Promise<Message> =>
      router.request(
        {
          type: edgeType.createTunnelCircuitV2,
          body: CreateTunnelCircuitV2Request.encode(
            CreateTunnelCircuitV2Request.fromPartial({ serviceName: 'the wiki' }),
          ).finish(),
        },
        30_000,
      ),
    [Symbol.dispose]() {
      channel.close('end of the test')
      router.close('end of the test')
    },
  }
}

test('many dials at a time do not keep the answers of their router away', async () => {
  using connection = connect(async (toRouter) => {
    await toRouter.request({ type: ctrlType.route }, 10_000)
    return circuit
  })
  const answers = await Promise.all(Array.from({ length: 2000 }, connection.dial))
  const outcomes = answers.map(({ type, body }) =>
    type === edgeType.error ? body.toString() : CreateTunnelCircuitV2Response.decode(body).circuitId,
  )
  expect([...new Set(outcomes)].sort()).toEqual(['c1', 'too many circuits at a time'])
})

test('a circuit whose router has left meanwhile is ended', async () => {
  const [asked, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<OpenedCircuit>()]
  using connection = connect(async () => {
    asked.resolve()
    return opened.promise
  })
  connection.dial().catch(() => undefined) // it has no answer
  await asked.promise
  connection.channel.close('gone')
  opened.resolve(circuit)
  await expect.poll(() => connection.ended).toEqual(['c1'])
})
