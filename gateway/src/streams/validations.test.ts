import { duplexPair } from 'node:stream'
import {
  type Message,
  openChannel,
  ValidateAllTerminatorsRequest,
  ValidatedComponent,
  ValidateModelRequest,
  ValidateRoutersRequest,
  ValidationStarted,
} from '@overlay/channel'
import { Fault, ownContext, type ValidateRequest, Validation, type ValidationPart } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { openManagementChannel } from './management-channel.js'
import { modelsOf, type Validate } from './validations.js'

const source = {
  ready: async () => undefined,
  listen: () => ({ [Symbol.dispose]: () => undefined }),
  [Symbol.asyncDispose]: async () => undefined,
}

function connect(validate: Validate) {
  const received: Message[] = []
  const [client, server] = duplexPair()
  const own = openManagementChannel(server, {
    ...{ events: source, changes: source, countEntities: async () => ({}) },
    validate,
  })
  const channel = openChannel(client, { onMessage: (message) => void received.push(message) })
  return {
    own,
    received,
    async start(type: number, body: Uint8Array) {
      const answer = await channel.request({ type, body }, 30_000)
      return { type: answer.type, ...ValidationStarted.decode(answer.body) }
    },
    [Symbol.dispose]() {
      channel.close('end of the test')
    },
  }
}

const ofRouters = ValidateRoutersRequest.encode({ filter: 'name = "r1"' }).finish()
const started = (type: number, count: bigint) => ({ type, success: true, message: '', count })

test.each([
  [10_103, 10_104, 10_105, Validation.VALIDATION_LINKS],
  [10_106, 10_107, 10_108, Validation.VALIDATION_SDK_TERMINATORS],
  [10_112, 10_113, 10_114, Validation.VALIDATION_CONNECTIONS],
  [10_115, 10_116, 10_117, Validation.VALIDATION_TUNNEL_TERMINATORS],
  [10_118, 10_119, 10_120, Validation.VALIDATION_CIRCUITS],
])(
  'a request of type %i is answered with the count, which the results follow',
  async (type, answer, result, what) => {
    const requests: ValidateRequest[] = []
    using stream = connect(async function* (request) {
      requests.push(request)
      yield { count: 2, results: [] }
      for (const text of ['one', 'two']) yield { count: 0, results: [Buffer.from(text)] }
    })
    expect(await stream.start(type, ofRouters)).toEqual(started(answer, 2n))
    await expect.poll(() => stream.received.map(({ body }) => body.toString())).toEqual(['one', 'two'])
    expect(stream.received.map((message) => message.type)).toEqual([result, result])
    expect(requests).toEqual([{ what, filter: 'name = "r1"', fix: false }])
  },
)

test('terminators and models are repaired on request', async () => {
  const requests: ValidateRequest[] = []
  using stream = connect(async function* (request) {
    requests.push(request)
    yield { count: 0, results: [] }
  })
  const terminators = { filter: '', fixInvalid: true, identitiesFilter: '' }
  const expected = { expectedPerHost: 0, expectedPerServiceAndHost: 0 }
  const body = ValidateAllTerminatorsRequest.encode({ ...terminators, ...expected }).finish()
  expect(await stream.start(10_100, body)).toEqual(started(10_101, 0n))
  const models = ValidateModelRequest.encode({ filter: 'f', validateControllers: true, fix: true }).finish()
  expect(await stream.start(10_109, models)).toEqual(started(10_110, 0n))
  expect(requests).toEqual([
    { what: Validation.VALIDATION_TERMINATORS, filter: '', fix: true },
    { what: Validation.VALIDATION_MODEL, filter: 'f', fix: true },
  ])
  const counted = ValidateAllTerminatorsRequest.encode({ ...terminators, ...expected, expectedPerHost: 2 })
  expect(await stream.start(10_100, counted.finish())).toMatchObject({ success: false })
})

test('a validation that is refused is answered with the reason, and one that fails later ends the channel', async () => {
  let fails = false
  const read = Promise.withResolvers<void>()
  using stream = connect(async function* () {
    if (!fails) throw new Fault('INVALID_FILTER', 'unknown symbol')
    yield { count: 1, results: [] }
    await read.promise
    throw new Fault('UNAVAILABLE')
  })
  expect(await stream.start(10_118, ofRouters)).toMatchObject({ type: 10_119, success: false })
  fails = true
  expect(await stream.start(10_118, ofRouters)).toMatchObject({ success: true })
  read.resolve()
  await expect.poll(() => stream.own.closed.aborted).toBe(true)
})

const component = (componentId: string, componentType: string, errors: string[] = []) =>
  Buffer.from(
    ValidatedComponent.encode({
      ...{ componentId, componentType, componentName: '', errors },
      success: errors.length === 0,
    }).finish(),
  )

test('of each router, the replica at which it subscribes validates its model', async () => {
  const replica = (...results: Buffer[]) => ({
    async *validate() {
      yield { count: results.length, results: [] }
      yield { count: 0, results }
    },
  })
  const away = {
    // biome-ignore lint/correctness/useYield: it fails
    async *validate() {
      throw new Fault('UNAVAILABLE')
    },
  }
  const replicas = [
    replica(component('a', 'router'), component('b', '', ['none']), component('c', '', ['none'])),
    away,
    replica(
      component('a', '', ['none']),
      component('b', 'router', ['differs']),
      component('c', '', ['none']),
    ),
  ]
  const request = { what: Validation.VALIDATION_MODEL, filter: '', fix: false }
  const context = ownContext(new AbortController().signal)
  const parts: ValidationPart[] = []
  for await (const part of modelsOf(replicas, request, context)) parts.push(part)
  const [first, second] = parts
  expect(first?.count).toBe(3)
  const results = second?.results.map((result) => ValidatedComponent.decode(result))
  expect(results?.map(({ componentId, errors }) => [componentId, ...errors])).toEqual([
    ['a'],
    ['b', 'differs'],
    ['c', 'none'],
  ])
  expect(results?.map(({ componentType }) => componentType)).toEqual(['router', 'router', 'router'])
  await expect(modelsOf([away], request, context).next()).rejects.toThrow(Fault)
})

test('results that are larger than the queue of the channel arrive', async () => {
  const large = Buffer.alloc(3 * 1024 * 1024, 'x')
  using stream = connect(async function* () {
    yield { count: 3, results: [] }
    yield { count: 0, results: [large, large, large] }
  })
  await stream.start(10_118, ofRouters)
  await expect.poll(() => stream.received.map(({ body }) => body.length)).toEqual(Array(3).fill(large.length))
  expect(stream.own.closed.aborted).toBe(false)
})
