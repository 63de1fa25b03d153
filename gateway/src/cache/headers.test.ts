import { ownContext, type Positions } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { openHeaders } from './headers.js'
import { openWritePositions } from './write-positions.js'

const at = (number: number): Positions => ({ policy: { timeline: 't1', number } })

/** One replica tells changes, another answers; it is as far as `replica` says. */
async function following(received: Positions) {
  const asked: Positions[] = []
  const replica = { positions: at(0) }
  const writePositions = openWritePositions()
  const headers = openHeaders({
    policy: {
      async *watchHeaders(_, { signal }) {
        yield { positions: received, identityIds: [], all: false, grants: false, ageMs: 0, routers: true }
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
      },
      async getHeader(_, { positions }) {
        asked.push(positions)
        return { lastChangeAtMs: 1, contentKey: 'k', positions: replica.positions }
      },
    },
    writePositions,
    log: { warn: () => undefined },
    context: () => ownContext(new AbortController().signal),
  })
  while (!headers.isHeard()) await new Promise(setImmediate)
  return { headers, asked, replica, writePositions }
}

test('a header must not be older than the stream', async () => {
  const { headers, asked } = await following(at(5))
  await using _headers = headers
  await headers.of('alice')
  expect(asked).toEqual([at(5)])
})

test('what a replica says that is behind is used once', async () => {
  const { headers, asked, replica } = await following(at(5))
  await using _headers = headers
  replica.positions = at(4)
  await headers.of('alice')
  replica.positions = at(5)
  await headers.of('alice')
  await headers.of('alice')
  expect(asked.length).toBe(2)
})

test('a write through this gateway makes headers be asked for again, an addition does not', async () => {
  const { headers, asked, replica, writePositions } = await following(at(5))
  await using _headers = headers
  replica.positions = at(5)
  await headers.of('alice')
  writePositions.note('policy', at(6).policy, 'addition')
  expect(headers.of('alice')).not.toBeInstanceOf(Promise)
  writePositions.note('policy', at(7).policy)
  expect(headers.of('alice')).toBeInstanceOf(Promise)
  expect(asked.length).toBe(2)
})
