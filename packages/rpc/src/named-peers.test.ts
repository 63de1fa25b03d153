import { once } from 'node:events'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { testTls } from '../testing/test-certificates.js'
import {
  callerTls,
  changeMethods,
  context,
  freePort,
  kindsOfCalls,
  sendSmall,
  startServer,
  starts,
  submit,
} from '../testing/test-service.js'
import type { LookUp } from './addresses.js'
import { connectPeers, type Peers, type PeersOptions } from './peers.js'
import { remote } from './remote.js'

/** A name, its addresses and replicas at them. Undefined addresses: the look-up fails. */
async function startNamed(options: Partial<PeersOptions> = {}, prefix = '') {
  const port = await freePort()
  const dns = { addresses: undefined as readonly string[] | undefined, lookUps: 0 }
  const lookUp: LookUp = async (host) => {
    dns.lookUps++
    if (host !== 'policy.test' || !dns.addresses) throw new Error(`${host} not found`)
    return dns.addresses
  }
  const failures: unknown[] = []
  const connect = (): Peers => {
    const peers = connectPeers(`${prefix}dns:policy.test:${port}`, {
      tls: callerTls,
      service: 'policy',
      lookUp,
      lookUpMs: 0,
      onLookUpFailed: (err) => failures.push(err),
      ...options,
    })
    onTestFinished(() => peers[Symbol.asyncDispose]())
    return peers
  }
  return {
    dns,
    failures,
    connect,
    /** A replica whose name is the end of its address. */
    start: (at: number, options = {}) => startServer(`127.0.0.${at}:${port}`, String(at), options),
    at: (...ends: number[]) => {
      dns.addresses = ends.map((end) => `127.0.0.${end}`)
    },
  }
}

/** Calls without a pause. `end` throws the failure of the first one that has failed. */
function startLoad(peers: Peers) {
  let isRunning = true
  let answered: string[] = []
  const run = async (send: () => Promise<readonly string[]>): Promise<void> => {
    while (isRunning) answered.push((await send())[1] ?? '')
  }
  const write = async () => [(await submit(peers, context())).id, 'write'] as const
  const sends = [
    ...kindsOfCalls.map(
      ([, send]) =>
        () =>
          send(peers, 'yes', context()),
    ),
    write,
  ]
  // replicas take turns: with a multiple of their number, each could get calls of one kind only, such as writes
  const loops = [...sends, ...sends, ...sends.slice(0, 1)]
  const all = Promise.all(loops.map(run))
  all.catch(() => undefined) // `end` throws it
  return {
    /** Which replicas answer from now on. */
    async replicas(): Promise<string[]> {
      answered = []
      await Promise.race([all, expect.poll(() => answered.length).toBeGreaterThan(60)])
      return [...new Set(answered)].filter((name) => name !== 'write').sort()
    },
    async end(): Promise<void> {
      isRunning = false
      await all
    },
  }
}

const watch = (peers: Peers) =>
  remote(changeMethods, peers)
    .watch({ after: undefined, gatherMs: 0, kinds: [] }, context())
    [Symbol.asyncIterator]()

describe('the replicas of a name', () => {
  test('get calls when their addresses are found, under load', async () => {
    const named = await startNamed()
    await using _a = await named.start(2)
    named.at(2)
    const load = startLoad(named.connect())
    expect(await load.replicas()).toEqual(['2'])
    await using _b = await named.start(3)
    await using _c = await named.start(4)
    named.at(2, 3, 4)
    await expect.poll(() => load.replicas()).toEqual(['2', '3', '4'])
    await load.end()
  })

  test('get no calls when their addresses are no longer found, and no call fails', async () => {
    const named = await startNamed()
    const a = await named.start(2)
    await using _b = await named.start(3)
    named.at(2, 3)
    const load = startLoad(named.connect())
    await expect.poll(() => load.replicas()).toEqual(['2', '3'])
    named.at(3)
    await expect.poll(() => load.replicas()).toEqual(['3'])
    await a[Symbol.asyncDispose]()
    expect(await load.replicas()).toEqual(['3'])
    await load.end()
  })

  test.each(kindsOfCalls)('answer a pending %s after their addresses have vanished', async (_kind, send) => {
    const named = await startNamed()
    await using _a = await named.start(2)
    await using _b = await named.start(3)
    named.at(2)
    const peers = named.connect()
    await send(peers, 'yes', context())
    const abort = new AbortController()
    const started = once(starts, 'slow')
    const settled = vi.fn()
    const slow = send(peers, 'slow', context(undefined, abort.signal)).finally(settled)
    slow.catch(() => undefined)
    await started
    named.at(3)
    await expect.poll(async () => (await send(peers, 'yes', context()))[1]).toBe('3')
    expect(settled).not.toHaveBeenCalled()
    abort.abort(new Error('the end of the test'))
    await expect(slow).rejects.toMatchObject({ cause: { message: 'the end of the test' } })
  })

  test('lose their streams when their addresses have vanished', async () => {
    const named = await startNamed()
    await using _a = await named.start(2)
    await using _b = await named.start(3)
    named.at(2)
    const peers = named.connect()
    const stream = watch(peers)
    await stream.next()
    const rest = (async () => {
      while (!(await stream.next()).done);
    })()
    rest.catch(() => undefined)
    named.at(3)
    await expect.poll(async () => (await sendSmall(peers, 'yes', context()))[1]).toBe('3')
    await expect(rest).rejects.toBeDefined()
    expect((await watch(peers).next()).done).toBe(false)
  })

  test('stay when a look-up fails or finds nothing', async () => {
    const named = await startNamed()
    await using _a = await named.start(2)
    named.at(2)
    const load = startLoad(named.connect())
    await load.replicas()
    named.dns.addresses = undefined
    await expect.poll(() => named.failures.length).toBeGreaterThan(1)
    expect(await load.replicas()).toEqual(['2'])
    named.at()
    const failures = named.failures.length
    await expect.poll(() => named.failures.length).toBeGreaterThan(failures + 1)
    expect(await load.replicas()).toEqual(['2'])
    await load.end()
  })

  test.each(kindsOfCalls)('are waited for by a %s before the name is found', async (_kind, send) => {
    const named = await startNamed()
    const peers = named.connect()
    const answer = send(peers, 'yes', context())
    const message = watch(peers).next()
    await expect(send(peers, 'yes', context(50))).rejects.toMatchObject({ code: 'TIMEOUT' })
    await using _a = await named.start(2)
    named.at(2)
    expect(await answer).toEqual(['alice', '2'])
    expect((await message).done).toBe(false)
  })

  test('are looked up at once when one is lost', async () => {
    const named = await startNamed({ lookUpMs: Number.POSITIVE_INFINITY })
    const a = await named.start(2)
    named.at(2)
    const load = startLoad(named.connect())
    expect(await load.replicas()).toEqual(['2'])
    await using _b = await named.start(3)
    named.at(3)
    await a[Symbol.asyncDispose]() // no call has learned of the other one before
    expect(await load.replicas()).toContain('3')
    await expect.poll(() => load.replicas()).toEqual(['3'])
    await load.end()
  })

  test('are not looked up while nothing is called', async () => {
    let beat: (() => void) | undefined
    const named = await startNamed({
      startBeats(start) {
        beat = start
        return () => {
          beat = undefined
        }
      },
    })
    await using _a = await named.start(2)
    named.at(2)
    const peers = named.connect()
    await sendSmall(peers, 'yes', context())
    const before = named.dns.lookUps
    beat?.()
    await expect.poll(() => named.dns.lookUps).toBe(before + 1)
    expect(beat).toBeUndefined() // no timer runs
  })

  test('are never those of another service that has got the address', async () => {
    const named = await startNamed()
    const a = await named.start(2)
    named.at(2)
    const peers = named.connect()
    await sendSmall(peers, 'yes', context())
    await a[Symbol.asyncDispose]()
    const refused = vi.fn()
    await using _pki = await named.start(2, { tls: await testTls('pki'), refused })
    for (const [, send] of kindsOfCalls)
      await expect(send(peers, 'yes', context())).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await using _b = await named.start(3)
    named.at(3)
    await expect.poll(() => sendSmall(peers, 'yes', context())).toEqual(['alice', '3'])
  })

  test('are beside those that are listed by address', async () => {
    const fixed = await freePort()
    await using _fixed = await startServer(fixed, 'fixed')
    const named = await startNamed({}, `127.0.0.1:${fixed}, `)
    await using _a = await named.start(2)
    const load = startLoad(named.connect())
    expect(await load.replicas()).toEqual(['fixed'])
    named.at(2)
    await expect.poll(() => load.replicas()).toEqual(['2', 'fixed'])
    await load.end()
  })

  test('are no longer waited for when their client closes', async () => {
    const named = await startNamed()
    const peers = named.connect()
    const call = expect(sendSmall(peers, 'yes', context())).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    })
    await peers[Symbol.asyncDispose]()
    await call
  })
})
