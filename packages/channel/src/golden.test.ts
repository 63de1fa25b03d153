import type { BinaryWriter } from '@bufbuild/protobuf/wire'
import { expect, test } from 'vitest'
import { decodeOne } from '../testing/frames.js'
import { goldenFrames } from '../testing/golden-frames.js'
import {
  CircuitConfirmation,
  ClientHello,
  CreateTerminatorV2Request,
  CreateTunnelTerminatorRequest,
  circuitRequestHeader,
  circuitResponseHeader,
  contentType,
  ctrlType,
  decodeBool,
  decodeBytesMap,
  decodeInt32,
  decodeText,
  decodeTextList,
  decodeTextMap,
  decodeUint32,
  decodeVersion,
  edgeType,
  encodeBytesMap,
  encodeFrame,
  encodeTextList,
  encodeTextMap,
  encodeUint64,
  Fault,
  FaultSubject,
  groupedHeader,
  type Headers,
  hasBit,
  headerKey,
  InspectResponse,
  InvalidTerminatorReason,
  LinkListeners,
  Metrics,
  modelHeader,
  Route,
  RouterLinks,
  RouterMetadata,
  routeErrorCode,
  routeResultHeader,
  routerCapability,
  TerminatorPrecedence,
  ValidateTerminatorsV2Response,
} from './index.js'

type Name = keyof typeof goldenFrames

const messageOf = (name: Name) => decodeOne(Buffer.from(goldenFrames[name], 'hex'))

function headerOf(headers: Headers, key: number): Buffer {
  const value = headers.get(key)
  if (!value) throw new Error(`no header ${key}`)
  return value
}

test.each(Object.keys(goldenFrames) as Name[])('%s encodes to the same bytes', (name) => {
  const { type, sequence, headers, body } = messageOf(name)
  expect(encodeFrame(type, sequence, headers, body).toString('hex')).toBe(goldenFrames[name])
})

test('a hello names the router, its version, its listeners and what it supports', () => {
  const { type, sequence, headers, body } = messageOf('hello')
  expect({ type, sequence, id: decodeText(body) }).toEqual({
    type: contentType.hello,
    sequence: -1,
    id: 'golden.r1',
  })
  expect(decodeVersion(headerOf(headers, headerKey.version))).toEqual({
    version: 'v1.1.13',
    revision: 'f76e592d7',
    buildDate: '2024-09-17',
    os: 'linux',
    arch: 'amd64',
  })
  expect(LinkListeners.decode(headerOf(headers, headerKey.listeners)).listeners).toEqual([
    {
      address: 'tls:localhost:16280',
      protocol: 'tls',
      costTags: [],
      groups: ['default'],
      localBinding: 'lo',
    },
  ])
  expect(RouterMetadata.decode(headerOf(headers, headerKey.routerMetadata)).capabilities).toEqual([1])
})

test('heartbeats carry stamps of 8 bytes', () => {
  const beat = messageOf('heartbeat')
  const answer = messageOf('heartbeatAnswer')
  expect([beat.type, answer.type]).toEqual([contentType.heartbeat, contentType.heartbeat])
  expect(headerOf(beat.headers, headerKey.heartbeat)).toHaveLength(8)
  expect(headerOf(answer.headers, headerKey.heartbeatResponse)).toHaveLength(8)
})

test('a request for a circuit consists of headers', () => {
  const { type, headers, body } = messageOf('createCircuitV2')
  const fingerprints = headerOf(headers, circuitRequestHeader.fingerprints)
  const peerData = headerOf(headers, circuitRequestHeader.peerData)
  expect([type, body.length]).toEqual([edgeType.createCircuitV2, 0])
  expect(decodeText(headerOf(headers, circuitRequestHeader.sessionToken))).toBe('session')
  expect(decodeText(headerOf(headers, circuitRequestHeader.apiSessionToken))).toBe('api-session')
  expect(decodeText(headerOf(headers, circuitRequestHeader.terminatorInstanceId))).toBe('instance')
  expect(encodeTextList(decodeTextList(fingerprints))).toEqual(fingerprints)
  expect(encodeBytesMap(decodeBytesMap(peerData))).toEqual(peerData)
  expect(decodeTextList(fingerprints)).toEqual(['0a1b', '2c3d'])
  expect(decodeBytesMap(peerData).get(1008)?.toString()).toBe('caller')
})

test('the answer to a request for a circuit consists of headers', () => {
  const { type, headers } = messageOf('createCircuitV2Response')
  const tags = headerOf(headers, circuitResponseHeader.tags)
  expect(type).toBe(edgeType.createCircuitV2Response)
  expect(decodeText(headerOf(headers, circuitResponseHeader.circuitId))).toBe('c1')
  expect(decodeText(headerOf(headers, circuitResponseHeader.address))).toBe('i1')
  expect(decodeBytesMap(headerOf(headers, circuitResponseHeader.peerData)).size).toBe(1)
  expect(encodeTextMap(decodeTextMap(tags))).toEqual(tags)
  expect(decodeTextMap(tags)).toEqual(
    new Map([
      ['serviceId', 's1'],
      ['clientId', 'i1'],
    ]),
  )
})

test('a route result has its circuit as body, its attempt, and success or a code', () => {
  const success = messageOf('routeResult')
  expect([success.type, decodeText(success.body)]).toEqual([ctrlType.routeResult, 'c1'])
  expect(decodeUint32(headerOf(success.headers, routeResultHeader.attempt))).toBe(2)
  expect(decodeBool(headerOf(success.headers, routeResultHeader.success))).toBe(true)
  const refused = messageOf('routeResultRefused')
  expect(refused.headers.has(routeResultHeader.success)).toBe(false)
  expect([...headerOf(refused.headers, routeResultHeader.errorCode)]).toEqual([
    routeErrorCode.connectionRefused,
  ])
  expect(decodeText(headerOf(refused.headers, routeResultHeader.error))).toContain('refused')
  const reply = messageOf('routeResultReply')
  expect(decodeInt32(headerOf(reply.headers, headerKey.replyFor))).toBe(4)
  expect(headerOf(reply.headers, 128).readBigUInt64LE()).toBe(77n)
})

interface Codec<T> {
  encode(message: T): BinaryWriter
  decode(bytes: Uint8Array): T
}

const bodies = <T>(name: Name, codec: Codec<T>, type: number, expected: unknown) => ({
  name,
  type,
  decoded: (body: Buffer) => codec.decode(body),
  encoded: (body: Buffer) => Buffer.from(codec.encode(codec.decode(body)).finish()),
  expected,
})

test.each([
  bodies('clientHello', ClientHello, edgeType.clientHello, {
    hostname: 'localhost',
    listeners: [
      expect.objectContaining({
        advertise: { value: 'localhost:16281', protocol: 'tls', hostname: 'localhost', port: 16281 },
      }),
    ],
  }),
  bodies('createTunnelTerminator', CreateTunnelTerminatorRequest, edgeType.createTunnelTerminator, {
    serviceName: 'svc',
    startTime: 1795370443073n,
  }),
  bodies(
    'validateTerminatorsV2Response',
    ValidateTerminatorsV2Response,
    ctrlType.validateTerminatorsV2Response,
    {
      states: new Map([
        ['t1', expect.objectContaining({ valid: true, marker: 7n })],
        ['t2', expect.objectContaining({ valid: false, reason: InvalidTerminatorReason.UNKNOWN_TERMINATOR })],
      ]),
    },
  ),
  bodies('inspectResponse', InspectResponse, ctrlType.inspectResponse, {
    success: true,
    values: [{ name: 'links', value: expect.stringContaining('"links":null') }],
  }),
  bodies('metrics', Metrics, ctrlType.metrics, { sourceId: 'golden.r1' }),
  bodies('createTerminatorV2', CreateTerminatorV2Request, edgeType.createTerminatorV2, {
    address: 't1',
    sessionToken: 'session',
    fingerprints: ['0a1b'],
    peerData: new Map([[1003, Buffer.from([1, 2, 3])]]),
    cost: 65535,
    precedence: TerminatorPrecedence.REQUIRED,
    instanceId: 'instance',
    instanceSecret: Buffer.from([9, 8]),
    apiSessionToken: 'api-session',
  }),
  bodies('fault', Fault, ctrlType.fault, { subject: FaultSubject.LINK_DUPLICATE, id: 'link', iteration: 3 }),
  bodies('route', Route, ctrlType.route, { circuitId: 'c1', attempt: 2, timeout: 10_000_000_000n }),
  bodies('routerLinks', RouterLinks, ctrlType.routerLinks, {
    links: [
      {
        id: 'l1',
        destinationRouterId: 'r2',
        protocol: 'tls',
        costTags: ['a'],
        dialAddress: 'tls:h:1',
        iteration: 2,
      },
    ],
  }),
  bodies('circuitConfirmation', CircuitConfirmation, ctrlType.circuitConfirmation, {
    circuitIds: ['c1'],
    idleTimes: new Map([['c1', 90_000_000_000_000_000n]]), // beyond 2^53
  }),
])('the body of $name decodes', ({ name, type, decoded, encoded, expected }) => {
  const message = messageOf(name)
  expect(message.type).toBe(type)
  expect(decoded(message.body)).toEqual(expect.objectContaining(expected))
  if (name !== 'metrics' && name !== 'validateTerminatorsV2Response')
    expect(encoded(message.body)).toEqual(message.body) // those have maps in any order
})

test('the hello of a grouped connection has other keys', () => {
  const { headers, body } = messageOf('groupedHello')
  expect(decodeText(body)).toBe('3AzI8EiBi')
  expect(decodeVersion(headerOf(headers, headerKey.version)).version).toBe('v2.0.3')
  expect(decodeText(headerOf(headers, headerKey.type))).toBe('ctrl.default')
  expect(decodeBool(headerOf(headers, groupedHeader.isGrouped))).toBe(true)
  expect(decodeBool(headerOf(headers, groupedHeader.isFirst))).toBe(true)
  expect(headers.has(groupedHeader.secret)).toBe(false)
  const { listeners } = LinkListeners.decode(headerOf(headers, groupedHeader.listeners))
  expect(listeners.map(({ address }) => address)).toEqual(['tls:localhost:21511'])
  expect(hasBit(headerOf(headers, groupedHeader.capabilities), routerCapability.multiChannel)).toBe(true)
})

test('a further connection of the group has its secret, and is not the first', () => {
  const { headers } = messageOf('furtherHello')
  expect(decodeText(headerOf(headers, headerKey.type))).toBe('ctrl.high')
  expect(decodeText(headerOf(headers, headerKey.connectionId))).toBe('Yd0Y')
  expect(headerOf(headers, groupedHeader.secret)).toHaveLength(16)
  expect(headers.has(groupedHeader.isFirst)).toBe(false)
})

test('the client hello of a router with the data model has the index of its model', () => {
  const { type, headers, body } = messageOf('groupedClientHello')
  expect(type).toBe(edgeType.clientHello)
  expect(decodeBool(headerOf(headers, modelHeader.isSupported))).toBe(true)
  expect(headerOf(headers, modelHeader.index)).toEqual(encodeUint64(0n))
  expect(ClientHello.decode(body)).toMatchObject({ version: 'v2.0.3', hostname: 'localhost' })
})
