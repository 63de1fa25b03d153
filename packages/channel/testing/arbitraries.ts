import fc from 'fast-check'

const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })
const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((array) => Buffer.from(array))

export const message = fc.record({
  type: int32,
  sequence: int32,
  headers: fc.array(fc.tuple(int32, bytes(300)), { maxLength: 12 }).map((entries) => new Map(entries)),
  body: fc.oneof(bytes(200), bytes(20_000)),
})

/** Cuts bytes at positions that the numbers, each within 0 and 1, choose. */
export const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 30 })

export function cut(stream: Buffer, at: readonly number[]): Buffer[] {
  const positions = at.map((part) => Math.floor(part * stream.length)).sort((a, b) => a - b)
  return [...positions, stream.length].map((end, index) => stream.subarray(positions[index - 1] ?? 0, end))
}
