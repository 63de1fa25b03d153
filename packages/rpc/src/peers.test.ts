import { once } from 'node:events'
import { describe, expect, test, vi } from 'vitest'
import {
  breakableProxy,
  callerTls,
  changeMethods,
  context,
  contexts,
  freePort,
  hangingProxy,
  kindsOfCalls,
  peersAt,
  sendSmall,
  startServer,
  starts,
  submit,
} from '../testing/test-service.js'
import { connectPeers } from './peers.js'
import { remote } from './remote.js'

describe.each(kindsOfCalls)('a %s', (_kind, send) => {
  test('before the first start of its service waits for it until its deadline', async () => {
    const port = await freePort()
    await using early = peersAt(port)
    const answer = send(early, 'yes', context())
    await expect(send(early, 'yes', context(50))).rejects.toMatchObject({ code: 'TIMEOUT' })
    await using _late = await startServer(port)
    expect(await answer).toEqual(['alice', 'a'])
  })
  test('fails at once while its service is down, and succeeds afterwards', async () => {
    const port = await freePort()
    await using peers = peersAt(port)
    {
      await using _first = await startServer(port)
      await send(peers, 'yes', context())
    }
    await expect(send(peers, 'yes', context())).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await using _second = await startServer(port)
    await expect.poll(() => send(peers, 'yes', context())).toEqual(['alice', 'a'])
  })
  test('fails with all other pending calls when the connection breaks', async () => {
    await using server = await startServer()
    const proxy = await breakableProxy(server.port)
    await using peers = peersAt(proxy.port)
    const slow = Array.from({ length: 50 }, () => send(peers, 'slow', context()))
    const outcomes = Promise.allSettled(slow)
    await send(peers, 'yes', context())
    proxy.break()
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'UNAVAILABLE' } })
  })
  test('ends before its server stops', async () => {
    const server = await startServer()
    await using peers = peersAt(server.port)
    await send(peers, 'yes', context()) // connected: the limit is that of the answer
    const started = once(starts, 'slow')
    const running = expect(send(peers, 'slow', context(300))).rejects.toMatchObject({ code: 'TIMEOUT' }) // its own end
    await started
    await server[Symbol.asyncDispose]()
    await running
  })
  test('that takes too long does not prevent its server from stopping', async () => {
    const server = await startServer(0, 'a', { stopMs: 50 })
    await using peers = peersAt(server.port)
    const started = once(starts, 'slow')
    const running = expect(send(peers, 'slow', context())).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    })
    await started
    await server[Symbol.asyncDispose]()
    await running
  })
  test('goes to every replica, except one that is down', async () => {
    await using a = await startServer(0, 'a')
    const b = await startServer(0, 'b')
    await using peers = peersAt(a.port, b.port)
    const replicas = async () => {
      const answers = await Promise.all(Array.from({ length: 20 }, () => send(peers, 'yes', context())))
      return [...new Set(answers.map(([, name]) => name))].sort()
    }
    await expect.poll(replicas).toEqual(['a', 'b'])
    await b[Symbol.asyncDispose]()
    for (let n = 0; n < 10; n++) expect(await replicas()).toEqual(['a'])
  })
})

/** Two replicas. The first can hang. */
async function startReplicas() {
  const servers = [await startServer(0, 'a'), await startServer(0, 'b')] as const
  const first = await hangingProxy(servers[0].port)
  const beatAll = new Set<() => void>()
  const addresses = [first.port, servers[1].port].map((port) => `127.0.0.1:${port}`).join()
  const peers = connectPeers(addresses, {
    tls: callerTls,
    service: 'policy',
    startBeats(beat) {
      beatAll.add(beat)
      return () => beatAll.delete(beat)
    },
  })
  const second = peersAt(servers[1].port)
  const namesOf = async (send: (typeof kindsOfCalls)[number][1]) => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => send(peers, 'yes', context())))
    return [...new Set(answers.map(([, name]) => name))].sort()
  }
  for (const [, send] of kindsOfCalls) await expect.poll(() => namesOf(send)).toEqual(['a', 'b'])
  return {
    peers,
    first,
    namesOf,
    /** Beats until the work ends. Messages that have arrived are read between the beats, as with a timer. */
    async beatUntil<T>(work: Promise<T>): Promise<T> {
      let hasEnded = false
      const done = work.finally(() => {
        hasEnded = true
      })
      done.catch(() => undefined)
      while (!hasEnded) {
        for (const beat of beatAll) beat()
        await sendSmall(second, 'yes', context())
      }
      return done
    },
    async [Symbol.asyncDispose]() {
      for (const one of [peers, second, first, ...servers]) await one[Symbol.asyncDispose]()
    },
  }
}

describe('a replica that hangs and keeps its connections', () => {
  test.each(kindsOfCalls)('loses its pending retryable %ss to another replica', async (_kind, send) => {
    await using two = await startReplicas()
    two.first.hang()
    const calls = Promise.all([1, 2, 3, 4].map(() => send(two.peers, 'yes', context())))
    const answers = await two.beatUntil(calls)
    expect(answers.map(([, name]) => name)).toEqual(['b', 'b', 'b', 'b'])
  })
  test.each(kindsOfCalls)('gets no new %ss until it responds again', async (_kind, send) => {
    await using two = await startReplicas()
    two.first.hang()
    await two.beatUntil(send(two.peers, 'yes', context()).then(() => send(two.peers, 'yes', context())))
    expect(await two.namesOf(send)).toEqual(['b'])
    two.first.resume()
    await two.beatUntil(expect.poll(() => two.namesOf(send)).toEqual(['a', 'b']))
  })
  test('ends writes as unavailable, and they are not repeated elsewhere', async () => {
    await using two = await startReplicas()
    two.first.hang()
    contexts.length = 0
    const writes = Promise.allSettled(
      [1, 2, 3, 4].map(() => submit(two.peers, { ...context(), requestId: 'w' })),
    )
    const outcomes = await two.beatUntil(writes)
    const failed = outcomes.filter(({ status }) => status === 'rejected')
    for (const outcome of failed) expect(outcome).toMatchObject({ reason: { code: 'UNAVAILABLE' } })
    expect(failed.length).toBeGreaterThan(0)
    expect(contexts.filter(({ requestId }) => requestId === 'w').length).toBe(4 - failed.length)
  })
  test('ends its streams', async () => {
    await using two = await startReplicas()
    const abort = new AbortController()
    let messages = 0
    const read = async () => {
      const watch = remote(changeMethods, two.peers).watch
      for await (const _ of watch(
        { after: undefined, gatherMs: 0, kinds: [] },
        context(undefined, abort.signal),
      ))
        messages++
    }
    const streams = [read(), read()] // one at each replica
    const all = Promise.allSettled(streams)
    await expect.poll(() => messages).toBe(2000)
    two.first.hang()
    await expect(two.beatUntil(Promise.race(streams))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    abort.abort()
    expect((await all).filter(({ status }) => status === 'rejected').length).toBe(1)
  })
  test('keeps its calls when there is no other replica', async () => {
    await using server = await startServer()
    await using only = await hangingProxy(server.port)
    await using peers = peersAt(only.port)
    await sendSmall(peers, 'yes', context())
    only.hang()
    await expect(sendSmall(peers, 'yes', context(300))).rejects.toMatchObject({ code: 'TIMEOUT' })
  })
})

test('replacing an old connection breaks no running call', async () => {
  await using server = await startServer(0, 'a', { connectionAgeMs: 250 })
  await using proxy = await hangingProxy(server.port)
  await using peers = peersAt(proxy.port)
  const abort = new AbortController()
  const slow = kindsOfCalls.map(([, send]) => send(peers, 'slow', context(undefined, abort.signal)))
  const settled = vi.fn()
  const outcomes = Promise.allSettled(slow.map((call) => call.finally(settled)))
  await Promise.all(
    kindsOfCalls.map(async ([, send]) => {
      while (proxy.accepted() < 4) await send(peers, 'yes', context())
    }),
  )
  expect(settled).not.toHaveBeenCalled()
  abort.abort()
  await outcomes
})

describe('a connection', () => {
  test('is replaced when it is old, and no call fails', async () => {
    await using server = await startServer(0, 'a', { connectionAgeMs: 5 })
    await using peers = peersAt(server.port)
    const end = Date.now() + 200
    const callUntilEnd = async (): Promise<void> => {
      while (Date.now() < end) await sendSmall(peers, 'yes', context())
    }
    await Promise.all([callUntilEnd(), callUntilEnd(), callUntilEnd()])
  })
  test('refuses calls beyond its limit', async () => {
    await using server = await startServer()
    await using peers = peersAt(server.port)
    const abort = new AbortController()
    const calls = Array.from({ length: 1000 }, () =>
      sendSmall(peers, 'slow', context(undefined, abort.signal)),
    )
    const outcomes = Promise.allSettled(calls)
    await expect(sendSmall(peers, 'yes', context())).rejects.toMatchObject({
      code: 'SERVER_TOO_MANY_REQUESTS',
    })
    abort.abort()
    await outcomes
    expect(await sendSmall(peers, 'yes', context())).toEqual(['alice', 'a'])
  })
  test('ends the calls at the server when the client disconnects', async () => {
    await using server = await startServer()
    const closing = peersAt(server.port)
    const started = once(starts, 'slow')
    const call = expect(sendSmall(closing, 'slow', context())).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    })
    await started
    await closing[Symbol.asyncDispose]()
    await call
    const { signal } = contexts.at(-1) ?? context()
    if (!signal.aborted) await once(signal, 'abort')
  })
})
