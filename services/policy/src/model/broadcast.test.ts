import { expect, test } from 'vitest'
import { STALLED_MS, WINDOW_BYTES } from '../limits.js'
import { openBroadcast } from './broadcast.js'

const turn = () => new Promise(setImmediate)

/** Parts of equal size, and how many were made. */
function source(count: number, bytes: number) {
  const made = { count: 0 }
  async function* parts(): AsyncGenerator<Buffer, void> {
    for (; made.count < count; made.count++) yield Buffer.alloc(bytes, made.count)
  }
  return { parts: parts(), made }
}

async function contentOf(parts: AsyncIterable<Buffer> | undefined): Promise<number[]> {
  const content: number[] = []
  for await (const part of parts ?? []) content.push(part[0] ?? -1)
  return content
}

const { signal } = new AbortController()

test('every reader that joins while all parts are kept gets all parts, which are made once', async () => {
  const { parts, made } = source(4, 10)
  const broadcast = openBroadcast(parts)
  const first = broadcast.join(signal)
  expect((await first?.next())?.value?.[0]).toBe(0)
  const second = contentOf(broadcast.join(signal))
  expect([await contentOf(first), await second]).toEqual([
    [1, 2, 3],
    [0, 1, 2, 3],
  ])
  expect(made.count).toBe(4)
  expect(broadcast.join(signal)).toBeUndefined()
})

test('no more is made than the window holds for the slowest reader, and it can be joined no longer', async () => {
  const { parts, made } = source(20, WINDOW_BYTES / 4)
  const broadcast = openBroadcast(parts)
  const [fast, slow] = [broadcast.join(signal), broadcast.join(signal)]
  for (let part = 0; part < 4; part++) await fast?.next()
  void fast?.next()
  await turn()
  expect(made.count).toBeLessThanOrEqual(5)
  for (let part = 0; part < 4; part++) await slow?.next()
  await turn()
  expect(made.count).toBeGreaterThan(5)
  expect(broadcast.join(signal)).toBeUndefined()
})

test('a reader that stops the others is dropped, and one that leaves stops nobody', async () => {
  let now = 0
  const { parts } = source(20, WINDOW_BYTES / 4)
  const broadcast = openBroadcast(parts, () => now)
  const leaving = new AbortController()
  const [fast, stalled, gone] = [
    broadcast.join(signal),
    broadcast.join(signal),
    broadcast.join(leaving.signal),
  ]
  await stalled?.next()
  await gone?.next()
  leaving.abort()
  for (let part = 0; part < 4; part++) await fast?.next()
  now = STALLED_MS
  const rest = contentOf(fast)
  await turn()
  await stalled?.next().catch(() => undefined) // its step wakes the others
  expect(await rest).toHaveLength(16)
  await expect(contentOf(stalled)).resolves.toEqual([])
})

test('the failure of the source reaches all readers', async () => {
  // biome-ignore lint/correctness/useYield: it fails first
  async function* failing(): AsyncGenerator<Buffer, void> {
    throw new Error('broken')
  }
  const broadcast = openBroadcast(failing())
  const readers = [broadcast.join(signal), broadcast.join(signal)]
  await broadcast.done
  for (const reader of readers) await expect(reader?.next()).rejects.toThrow('broken')
})
