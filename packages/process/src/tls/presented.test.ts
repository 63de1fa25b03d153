import type { TLSSocket } from 'node:tls'
import { expect, test, vi } from 'vitest'
import { isExcessive, presentedChain, presentedLeaf } from './presented.js'

/** A connection whose client has presented so many certificates. */
function connection(count: number, bits = 4096) {
  const chain = Array.from({ length: count }, (_, at) => ({
    raw: Buffer.of(at),
    fingerprint256: `${at}`,
    bits,
  }))
  for (const [at, one] of chain.entries()) Object.assign(one, { issuerCertificate: chain[at + 1] ?? one })
  const getPeerCertificate = vi.fn((_isDetailed: boolean) => chain[0] ?? {})
  return { getPeerCertificate } as unknown as TLSSocket & { getPeerCertificate: typeof getPeerCertificate }
}

test('the certificates of a connection are decoded once', () => {
  const socket = connection(3)
  expect(presentedChain(socket)).toEqual([0, 1, 2].map((at) => Buffer.of(at)))
  expect(presentedChain(socket)).toHaveLength(3)
  for (let i = 0; i < 2; i++) expect(presentedLeaf(socket)).toEqual(Buffer.of(0))
  expect(socket.getPeerCertificate.mock.calls).toEqual([[true], [false]])
})

test('a client without a certificate has none', () => {
  const socket = connection(0)
  expect([presentedChain(socket), presentedLeaf(socket), isExcessive(socket)]).toEqual([[], undefined, false])
})

test('more than eight certificates are excessive, and so is a key of more than 8192 bits', () => {
  expect(isExcessive(connection(8))).toBe(false)
  expect(isExcessive(connection(9))).toBe(true)
  expect(isExcessive(connection(2, 8192))).toBe(false)
  expect(isExcessive(connection(2, 8193))).toBe(true)
})
