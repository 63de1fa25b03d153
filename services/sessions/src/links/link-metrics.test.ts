import { LinkMetrics } from '@overlay/channel'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeLimited, LIST_BYTES } from '../channel/handlers.js'
import { linkMetrics } from './link-metrics.js'

const varint = (value: number): number[] =>
  value < 128 ? [value] : [(value & 127) | 128, ...varint(value >> 7)]
const delimited = (field: number, content: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([field * 8 + 2, ...varint(content.length)]), content])

/** A count, and numbers of eight bytes. */
function values(count: number, mean = 1): Buffer {
  const fields = Array.from({ length: count }, (_, i) => {
    const value = Buffer.alloc(8)
    value.writeDoubleLE(i === 1 ? mean : i)
    return Buffer.concat([Buffer.of((i + 2) * 8 + 1), value])
  })
  return Buffer.concat([Buffer.of(8, 60), ...fields])
}
const entry = (field: number, name: string, value: Buffer): Buffer =>
  delimited(field, Buffer.concat([delimited(1, Buffer.from(name)), delimited(2, value)]))

test('all that a router with 3,000 links measures is within the limits', () => {
  const ids = Array.from({ length: 3000 }, (_, i) => `link${String(i).padStart(18, '0')}`)
  const histograms = ['latency', 'queue_time', 'tx.msgsize', 'rx.msgsize']
  const meters = ['tx.bytesrate', 'tx.msgrate', 'rx.bytesrate', 'rx.msgrate']
  const body = Buffer.concat([
    delimited(2, Buffer.from('r1')),
    ...ids.flatMap((id, i) => [
      ...histograms.map((name) => entry(8, `link.${id}.${name}`, values(11, i))),
      ...meters.map((name) => entry(10, `link.${id}.${name}`, values(4))),
    ]),
  ])
  expect(body.length).toBeLessThan(LIST_BYTES)
  const { sourceId, histograms: decoded } = decodeLimited(linkMetrics, body)
  expect(sourceId).toBe('r1')
  const names = ids.flatMap((id) => [`link.${id}.latency`, `link.${id}.queue_time`])
  expect([...decoded]).toEqual(names.map((name, i) => [name, { mean: Math.floor(i / 2) }]))
})

test('any message is decoded as the generated code does, without what is not of links', () => {
  const name = fc.constantFrom('link.l1.latency', 'link.l2.queue_time', 'link.l1.rx', 'cpu.latency', '')
  const messages = fc.record({
    sourceId: fc.string(),
    histograms: fc.uniqueArray(fc.tuple(name, fc.double()), { selector: ([key]) => key }),
  })
  fc.assert(
    fc.property(messages, fc.nat(400), (message, length) => {
      const histograms = new Map(message.histograms.map(([key, mean]) => [key, { mean }]))
      const body = Buffer.from(LinkMetrics.encode({ ...message, histograms }).finish())
      const expected = LinkMetrics.decode(body)
      for (const key of expected.histograms.keys())
        if (!/^link\..+\.(latency|queue_time)$/.test(key)) expected.histograms.delete(key)
      expect(decodeLimited(linkMetrics, body)).toEqual(expected)
      const cut = body.subarray(0, length)
      if (isDecoded(cut)) expect(() => decodeLimited(linkMetrics, cut)).not.toThrow()
    }),
  )
})

function isDecoded(body: Buffer): boolean {
  try {
    LinkMetrics.decode(body)
    return true
  } catch {
    return false
  }
}
