import { once } from 'node:events'
import { describe, expect, test, vi } from 'vitest'
import { connectPeers } from './peers.js'
import { remote } from './remote.js'
import {
  breakable,
  byStream,
  changePart,
  context,
  freePort,
  hanging,
  peersAt,
  secret,
  seen,
  start,
  starts,
  submit,
  ways,
} from './test-service.js'

describe.each(ways)('a %s', (_kind, say) => {
  test('made before the first start of its service waits for it, no longer than its deadline', async () => {
    const port = await freePort()
    await using early = peersAt(port)
    const answer = say(early, 'yes', context())
    await expect(say(early, 'yes', context(50))).rejects.toMatchObject({ code: 'TIMEOUT' })
    await using _late = await start(port)
    expect(await answer).toEqual(['alice', 'a'])
  })
  test('fails at once while its service is down, and works again afterwards', async () => {
    const port = await freePort()
    await using peers = peersAt(port)
    {
      await using _first = await start(port)
      await say(peers, 'yes', context())
    }
    await expect(say(peers, 'yes', context(60_000))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await using _second = await start(port)
    await vi.waitFor(() => say(peers, 'yes', context()), { timeout: 4000 })
  })
  test('fails with all beside it when the connection breaks', async () => {
    await using server = await start()
    const between = await breakable(server.port)
    await using peers = peersAt(between.port)
    const slow = Array.from({ length: 50 }, () => say(peers, 'slow', context(60_000)))
    const outcomes = Promise.allSettled(slow)
    await say(peers, 'yes', context())
    between.break()
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'UNAVAILABLE' } })
  })
  test('is finished before its server stops', async () => {
    const server = await start()
    await using peers = peersAt(server.port)
    const started = once(starts, 'slow')
    const running = expect(say(peers, 'slow', context(300))).rejects.toMatchObject({ code: 'TIMEOUT' }) // its own end
    await started
    await server[Symbol.asyncDispose]()
    await running
  })
  test('that takes too long does not keep its server from stopping', async () => {
    const server = await start(0, 'a', { stopMs: 50 })
    await using peers = peersAt(server.port)
    const started = once(starts, 'slow')
    const running = expect(say(peers, 'slow', context(60_000))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await started
    await server[Symbol.asyncDispose]()
    await running
  })
  test('goes to every replica, and past one that is down', async () => {
    await using a = await start(0, 'a')
    const b = await start(0, 'b')
    await using peers = peersAt(a.port, b.port)
    const asked = async () => {
      const answers = await Promise.all(Array.from({ length: 20 }, () => say(peers, 'yes', context())))
      return [...new Set(answers.map(([, name]) => name))].sort()
    }
    await vi.waitFor(async () => expect(await asked()).toEqual(['a', 'b']))
    await b[Symbol.asyncDispose]()
    for (let n = 0; n < 10; n++) expect(await asked()).toEqual(['a'])
  })
})

/** Two replicas; the first one can hang. */
async function startTwo() {
  const servers = [await start(0, 'a'), await start(0, 'b')] as const
  const first = await hanging(servers[0].port)
  const beatAll = new Set<() => void>()
  const addresses = [first.port, servers[1].port].map((port) => `127.0.0.1:${port}`).join()
  const peers = connectPeers(addresses, {
    secret,
    beats(beat) {
      beatAll.add(beat)
      return () => beatAll.delete(beat)
    },
  })
  const second = peersAt(servers[1].port)
  const namesOf = async (say: (typeof ways)[number][1]) => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => say(peers, 'yes', context())))
    return [...new Set(answers.map(([, name]) => name))].sort()
  }
  for (const [, say] of ways) await vi.waitFor(async () => expect(await namesOf(say)).toEqual(['a', 'b']))
  return {
    peers,
    first,
    namesOf,
    /** Beats until the work is over. What has arrived is read between the beats, as a timer would let it. */
    async beatUntil<T>(work: Promise<T>): Promise<T> {
      let isOver = false
      const done = work.finally(() => {
        isOver = true
      })
      done.catch(() => undefined)
      while (!isOver) {
        for (const beat of beatAll) beat()
        await byStream(second, 'yes', context())
      }
      return done
    },
    async [Symbol.asyncDispose]() {
      for (const one of [peers, second, first, ...servers]) await one[Symbol.asyncDispose]()
    },
  }
}

describe('a replica that hangs with its connections open', () => {
  test.each(ways)('loses its pending %ss to another one when they change nothing', async (_kind, say) => {
    await using two = await startTwo()
    two.first.hang()
    const asked = Promise.all([1, 2, 3, 4].map(() => say(two.peers, 'yes', context(60_000))))
    const answers = await two.beatUntil(asked)
    expect(answers.map(([, name]) => name)).toEqual(['b', 'b', 'b', 'b'])
  })
  test.each(ways)('gets no new %ss until it answers again', async (_kind, say) => {
    await using two = await startTwo()
    two.first.hang()
    await two.beatUntil(
      say(two.peers, 'yes', context(60_000)).then(() => say(two.peers, 'yes', context(60_000))),
    )
    expect(await two.namesOf(say)).toEqual(['b'])
    two.first.goOn()
    await two.beatUntil(vi.waitFor(async () => expect(await two.namesOf(say)).toEqual(['a', 'b'])))
  })
  test('ends writes as unavailable, and they are made nowhere else', async () => {
    await using two = await startTwo()
    two.first.hang()
    seen.length = 0
    const writes = Promise.allSettled(
      [1, 2, 3, 4].map(() => submit(two.peers, { ...context(60_000), requestId: 'w' })),
    )
    const outcomes = await two.beatUntil(writes)
    const failed = outcomes.filter(({ status }) => status === 'rejected')
    for (const outcome of failed) expect(outcome).toMatchObject({ reason: { code: 'UNAVAILABLE' } })
    expect(failed.length).toBeGreaterThan(0)
    expect(seen.filter(({ requestId }) => requestId === 'w').length).toBe(4 - failed.length)
  })
  test('ends its streams', async () => {
    await using two = await startTwo()
    const abort = new AbortController()
    let messages = 0
    const read = async () => {
      const watch = remote(changePart, two.peers).watch
      for await (const _ of watch(
        { after: undefined, gatherMs: 0, kinds: [] },
        context(60_000, abort.signal),
      ))
        messages++
    }
    const streams = [read(), read()] // one at each replica
    const all = Promise.allSettled(streams)
    await vi.waitFor(() => expect(messages).toBe(2000))
    two.first.hang()
    await expect(two.beatUntil(Promise.race(streams))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    abort.abort()
    expect((await all).filter(({ status }) => status === 'rejected').length).toBe(1)
  })
  test('is waited for when there is no other', async () => {
    await using server = await start()
    await using only = await hanging(server.port)
    await using peers = peersAt(only.port)
    await byStream(peers, 'yes', context())
    only.hang()
    await expect(byStream(peers, 'yes', context(300))).rejects.toMatchObject({ code: 'TIMEOUT' })
  })
})

test('a connection that is replaced because it is old breaks nothing that runs', async () => {
  await using server = await start(0, 'a', { connectionAgeMs: 50 })
  await using peers = peersAt(server.port)
  const abort = new AbortController()
  const slow = ways.map(([, say]) => say(peers, 'slow', context(60_000, abort.signal)))
  const settled = vi.fn()
  const outcomes = Promise.allSettled(slow.map((call) => call.finally(settled)))
  const end = Date.now() + 400
  await Promise.all(
    ways.map(async ([, say]) => {
      while (Date.now() < end) await say(peers, 'yes', context())
    }),
  )
  expect(settled).not.toHaveBeenCalled()
  abort.abort()
  await outcomes
})

describe('the tagged stream', () => {
  test('is replaced when it is old, without a call that fails', async () => {
    await using server = await start(0, 'a', { streamAgeMs: 5 })
    await using peers = peersAt(server.port)
    const end = Date.now() + 200
    const ask = async (): Promise<void> => {
      while (Date.now() < end) await byStream(peers, 'yes', context())
    }
    await Promise.all([ask(), ask(), ask()])
  })
  test('refuses calls beyond its limit instead of letting them wait', async () => {
    await using server = await start()
    await using peers = peersAt(server.port)
    const abort = new AbortController()
    const calls = Array.from({ length: 1000 }, () => byStream(peers, 'slow', context(60_000, abort.signal)))
    const outcomes = Promise.allSettled(calls)
    await expect(byStream(peers, 'yes', context())).rejects.toMatchObject({
      code: 'SERVER_TOO_MANY_REQUESTS',
    })
    abort.abort()
    await outcomes
    expect(await byStream(peers, 'yes', context())).toEqual(['alice', 'a'])
  }, 20_000)
  test('ends the calls at the server when its caller is gone', async () => {
    await using server = await start()
    const gone = peersAt(server.port)
    const started = once(starts, 'slow')
    const call = expect(byStream(gone, 'slow', context(60_000))).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    })
    await started
    await gone[Symbol.asyncDispose]()
    await call
    const { signal } = seen.at(-1) ?? context()
    if (!signal.aborted) await once(signal, 'abort')
  })
})
