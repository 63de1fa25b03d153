import { ChangeServiceService, connectPeers, host, ownContext, remote, serve } from '@overlay/rpc'
import { testTls } from '@overlay/rpc/testing'
import sql from 'sql-template-tag'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { ChangeLog } from '../src/change-log/change-log.js'
import { changeService } from '../src/change-log/change-service.js'
import { openProjection } from '../src/change-log/projection.js'
import { remoteSource } from '../src/change-log/source.js'
import { log, numbersTo, openStreams, rowChange, type Streams, until, write } from './streams.js'

let streams: Streams
beforeAll(async () => {
  streams = await openStreams()
})
afterEach(() => streams.close())
afterAll(() => streams[Symbol.asyncDispose]())

const tls = { owner: await testTls('identity'), follower: await testTls('policy') }
const rows = numbersTo(1201).map((n) => ({ id: `row ${n}`, json: { text: 'x'.repeat(2000) } }))
const serving = (changeLog: ChangeLog) =>
  serve('127.0.0.1:0', { log, tls: tls.owner }, [
    host(
      ChangeServiceService,
      changeService(changeLog, {
        async *identities(ids) {
          for (const row of rows) if (!ids || ids.includes(row.id)) yield row
        },
      }),
    ),
  ])
const timeout = () => AbortSignal.timeout(30_000)

/** Two replicas of the owner, and a follower over the network. */
async function network() {
  const changeLogs = [await streams.replica(), await streams.replica()] as const
  const servers = [await serving(changeLogs[0]), await serving(changeLogs[1])] as const
  const peers = connectPeers(servers.map(({ port }) => `127.0.0.1:${port}`).join(), {
    tls: tls.follower,
    service: 'identity',
  })
  const ids = new Set<string>()
  const projection = await openProjection(
    remoteSource('identity', remote(ChangeServiceService, peers)),
    {
      name: 'test',
      kinds: ['identities'],
      apply(changes) {
        for (const { id } of changes) ids.add(id)
      },
      load: () => ({
        add(rows) {
          for (const { id } of rows) ids.add(id)
        },
        end: () => undefined,
      }),
    },
    { log },
  )
  return {
    changeLogs,
    servers,
    projection,
    ids,
    async [Symbol.asyncDispose]() {
      await projection[Symbol.asyncDispose]()
      await peers[Symbol.asyncDispose]()
      for (const server of servers) await server[Symbol.asyncDispose]()
    },
  }
}

test('what is too large for one message arrives in several', async () => {
  await using net = await network()
  expect(net.ids.size).toBe(rows.length)
  const [one] = net.changeLogs
  const position = await write(one, ...rows.map(({ id, json }) => rowChange(`changed ${id}`, json)))
  await net.projection.waitFor(position, timeout())
  expect(net.ids.size).toBe(2 * rows.length)
})

test('a replica of the owner that ends leaves its followers to the others', async () => {
  await using net = await network()
  const [one, other] = net.changeLogs
  await net.servers[0][Symbol.asyncDispose]()
  await net.projection.waitFor(await write(one, rowChange('a')), timeout())
  await until(() => net.projection.isFresh())
  await write(other, rowChange('b'))
  await net.projection.catchUp(timeout())
  expect([net.ids.has('a'), net.ids.has('b')]).toEqual([true, true])
})

test('an owner on a new timeline is reloaded', async () => {
  await using net = await network()
  await streams.admin.query(sql`update stream set wal = '00000000'`)
  const position = await write(net.changeLogs[0], rowChange('after'))
  await net.projection.waitFor(position, timeout())
  expect(net.projection.position()).toEqual(position)
})

test('after its database was away, an owner goes on, and its followers with it', async () => {
  await using net = await network()
  await streams.admin.query(sql`
    select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'identity' and usename <> current_user and datname = current_database()`)
  let position = await write(net.changeLogs[0], rowChange('again')).catch(() => undefined)
  await until(async () => {
    position ??= await write(net.changeLogs[0], rowChange('again')).catch(() => undefined)
    return position !== undefined
  })
  if (position) await net.projection.waitFor(position, timeout())
  await until(() => net.ids.has('again') && net.projection.isFresh())
})

test('reach waits for the consumer of the schema, and answers at once where the schema is not followed', async () => {
  const changeLog = await streams.replica()
  const reached: number[] = []
  const { reach } = changeService(
    changeLog,
    {},
    { pki: { waitFor: async ({ number }) => void reached.push(number) } },
  )
  const position = { timeline: 'one', number: 7 }
  expect(await reach({ schema: 'pki', position }, ownContext(timeout()))).toEqual({})
  expect(await reach({ schema: 'policy', position }, ownContext(timeout()))).toEqual({})
  expect(reached).toEqual([7])
})
