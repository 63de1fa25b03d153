import { edgeErrorCode, edgeType, type Message, type Outgoing } from '@overlay/channel'
import pino from 'pino'
import { expect, test } from 'vitest'
import type { RouterChannel } from '../channel/router-channel.js'
import { AccessRefused } from '../domain/router-access.js'
import { NO_FEATURES } from '../domain/router-features.js'
import { handleCircuitRequests } from './request-handlers.js'

const refuse = async (): Promise<never> => {
  throw new AccessRefused(edgeErrorCode.invalidService, 'the service has no terminators')
}

test('a refused circuit leaves its reason in the log, with router, identity and service', async () => {
  const lines: object[] = []
  const [create] = handleCircuitRequests({
    checkAccess: async () => ({ sessionId: 's1', identityId: 'alice', serviceId: 'files' }) as never,
    checkDial: refuse,
    open: refuse,
    end: async () => true as never,
    log: pino({ base: null, timestamp: false }, { write: (line) => void lines.push(JSON.parse(line)) }),
  })
  await new Promise<Outgoing>((reply) => {
    const channel = { reply: (_: Message, outgoing: Outgoing) => reply(outgoing) }
    const router = { routerId: 'r1', channel, features: NO_FEATURES } as unknown as RouterChannel
    const message = { type: edgeType.createCircuitV2, headers: new Map(), body: Buffer.alloc(0) }
    create?.prepare(message as unknown as Message, router)?.()
  })
  expect(lines).toEqual([
    {
      level: 30,
      msg: 'circuit refused',
      reason: 'the service has no terminators',
      routerId: 'r1',
      sessionId: 's1',
      identityId: 'alice',
      serviceId: 'files',
    },
  ])
})
