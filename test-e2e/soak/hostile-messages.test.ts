import {
  CreateTerminatorRequest,
  ctrlType,
  edgeType,
  Fault,
  MESSAGE_LIMITS,
  modelType,
} from '@overlay/channel'
import { expect, test } from 'vitest'
import { claims, type Foreign, hostileMessage, hostileTypes, shapeNames } from './hostile-messages.js'
import { randomOf } from './random.js'

const foreign: Foreign = {
  terminators: ['t1', 't2'],
  links: ['l1'],
  circuits: ['c1'],
  routers: ['r1'],
  services: ['s1'],
  sessions: ['x1'],
}

test('hostile messages have every type in every shape, within the limits of frames', () => {
  const types: number[] = [ctrlType, edgeType, modelType].flatMap((all) => Object.values<number>(all))
  expect(types.filter((type) => !hostileTypes.includes(type))).toEqual([ctrlType.decommissionRouter])
  const random = randomOf(1, 'hostile')
  for (const shape of shapeNames) {
    const { message } = hostileMessage(ctrlType.fault, shape, foreign, random)
    expect(message.body?.length ?? 0).toBeLessThanOrEqual(MESSAGE_LIMITS.bodyBytes)
    const headersBytes = [...(message.headers ?? [])].reduce((sum, [, value]) => sum + 8 + value.length, 0)
    expect(headersBytes).toBeLessThanOrEqual(MESSAGE_LIMITS.headersBytes)
    expect(message.headers?.size ?? 0).toBeLessThanOrEqual(256)
  }
})

test('the largest bodies are well-formed', () => {
  const { body = new Uint8Array() } = hostileMessage(
    ctrlType.fault,
    'most ids in one text',
    foreign,
    randomOf(1, 'hostile'),
  ).message
  expect(Fault.decode(body).id.split(' ').length).toBeGreaterThan(2_000_000)
  const random = randomOf(2, 'hostile')
  const lengths = Array.from({ length: 60 }, () => {
    const { message } = hostileMessage(
      edgeType.createTerminator,
      'most repetitions of an id',
      foreign,
      random,
      10_000,
    )
    try {
      return CreateTerminatorRequest.decode(message.body ?? new Uint8Array()).fingerprints.length
    } catch {
      return 0 // the id is no entry of a map
    }
  })
  expect(Math.max(...lengths)).toBeGreaterThan(1000)
})

test('claims name everything that others have', () => {
  const sent = claims(foreign, 'own', randomOf(1, 'hostile')).map(({ message }) =>
    Buffer.concat([
      message.body ?? Buffer.alloc(0),
      ...[...(message.headers ?? [])].map(([, value]) => value),
    ]).toString('latin1'),
  )
  for (const id of Object.values(foreign).flat())
    expect(
      sent.some((bytes) => bytes.includes(id)),
      id,
    ).toBe(true)
})
