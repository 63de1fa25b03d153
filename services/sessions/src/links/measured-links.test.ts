import { LinkMetrics } from '@overlay/channel'
import { expect, test } from 'vitest'
import { decodeLimited } from '../channel/handlers.js'
import { LIST_BYTES, METRICS_READS } from '../limits.js'

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
  const { sourceId, histograms: decoded } = decodeLimited(LinkMetrics, body, METRICS_READS)
  expect(sourceId).toBe('r1')
  const names = ids.flatMap((id) => histograms.map((name) => `link.${id}.${name}`))
  expect([...decoded]).toEqual(names.map((name, i) => [name, { mean: Math.floor(i / 4) }]))
})
