import type { IncomingMessage } from 'node:http'
import { expect, test, vi } from 'vitest'
import { peerCertificates } from './peer.js'

/** A connection whose client has presented so many certificates. Unlimited connections have one source in common. */
function connection(count: number) {
  const chain = Array.from({ length: count }, (_, at) => ({ raw: Buffer.of(at), fingerprint256: `${at}` }))
  for (const [at, one] of chain.entries()) Object.assign(one, { issuerCertificate: chain[at + 1] ?? one })
  const getPeerCertificate = vi.fn((_isDetailed: boolean) => chain[0] ?? {})
  const incoming = { socket: { getPeerCertificate } } as unknown as IncomingMessage
  return { read: () => peerCertificates(incoming), getPeerCertificate }
}

test('the certificates of a connection are decoded once', () => {
  const { read, getPeerCertificate } = connection(3)
  expect(read()).toEqual([0, 1, 2].map((at) => Buffer.of(at)))
  expect(read()).toHaveLength(3)
  expect(getPeerCertificate.mock.calls).toEqual([[true]])
})

test('a client without a certificate has none', () => {
  expect(connection(0).read()).toEqual([])
})

test('after too many certificates, only leaves of the source are decoded for a while', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  try {
    expect(connection(16).read()).toHaveLength(16)
    expect(connection(16).read()).toHaveLength(16)
    expect(connection(400).read()).toHaveLength(16)
    const next = connection(400)
    expect(next.read()).toEqual([Buffer.of(0)])
    expect(next.getPeerCertificate.mock.calls).toEqual([[false]])
    vi.advanceTimersByTime(1001)
    expect(connection(3).read()).toHaveLength(3)
  } finally {
    vi.useRealTimers()
  }
})
