import { randomUUID } from 'node:crypto'
import { LinkListeners } from '@overlay/channel'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { authority, certify, SubjectAlternativeNameExtension } from '../../identity/test/certificates.js'
import { routerMethods } from '../src/methods/router-methods.js'
import { takeReplicaId, writePresence } from '../src/store/presence.js'
import { certificates, presenceRow, type Routers, startRouters, waitForFollowers } from './routers.js'
import { log } from './store.js'

let routers: Routers
beforeAll(async () => {
  routers = await startRouters()
})
afterAll(() => routers[Symbol.asyncDispose]())

let count = 0
const newRouter = () => routers.create('edge-routers', { name: `r${count++}` })
/** The hosts that the router is refused, with the routers that use them. */
async function claim(routerId: string, ...hosts: string[]) {
  const { refused } = await routers.methods.claimRouterHosts({ routerId, hosts })
  return refused.map(({ host, routerId: by }) => [host, by])
}

test('a host belongs to the router that has it first, which keeps it', async () => {
  const [a, b] = [await newRouter(), await newRouter()]
  expect(await claim(a, 'a.example', 'shared.example')).toEqual([])
  expect(await claim(b, 'b.example', 'shared.example')).toEqual([['shared.example', a]])
  expect(await claim(a, 'a.example', 'shared.example')).toEqual([])
  expect(await claim(a, 'b.example')).toEqual([['b.example', b]])
})

test('a host is free when its router has other certificates, or is deleted', async () => {
  const [a, b] = [await newRouter(), await newRouter()]
  await claim(a, 'moved.example')
  await claim(a, 'new.example')
  expect(await claim(b, 'moved.example', 'new.example')).toEqual([['new.example', a]])
  await routers.remove('edge-routers', a)
  expect(await claim(b, 'new.example')).toEqual([])
  await expect(claim(a, 'new.example')).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('of claims at once for one host one succeeds', async () => {
  const ids = await Promise.all([1, 2, 3].map(newRouter))
  const waiting = async () => {
    const { rows } = await routers.db.query<{ count: number }>(sql`
      select count(*)::float8 as count from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`)
    return rows[0]?.count
  }
  const { refusals } = await routers.db.transaction(undefined, async (tx) => {
    await tx.query(sql`lock table router in share mode`) // nothing is reserved until all have begun
    const refusals = ids.map((id) => claim(id, 'wanted.example'))
    await expect.poll(waiting).toBe(ids.length)
    return { refusals }
  })
  const outcomes = await Promise.all(refusals)
  expect(outcomes.filter((refused) => refused.length === 0)).toHaveLength(1)
})

test('wildcards are refused', async () => {
  expect(await claim(await newRouter(), '*.example')).toEqual([['*.example', '']])
})

test('certificates that were issued before hosts were kept count, and their routers keep their hosts', async () => {
  const issuer = await authority('root')
  const names = new SubjectAlternativeNameExtension([
    { type: 'dns', value: '*.old.example' },
    { type: 'dns', value: 'OLD.example' },
    { type: 'ip', value: '192.0.2.7' },
    { type: 'dns', value: 'localhost' },
  ])
  const { certificate } = await certify({ name: 'old', issuer, extensions: [names] })
  const [a, b, c] = [await newRouter(), await newRouter(), await newRouter()]
  await routers.db.query(sql`
    update router set cert_pem = ${certificate.toString()} where id in (${a}, ${b})`)
  expect(await claim(c, 'old.example', '192.0.2.7')).toEqual([
    ['old.example', expect.any(String)],
    ['192.0.2.7', expect.any(String)],
  ])
  for (const id of [a, b]) expect(await claim(id, '*.old.example', 'old.example', '192.0.2.7')).toEqual([])
})

test('a certificate that cannot be read reserves no hosts, stops no claim, and is logged once', async () => {
  const [broken, other] = [await newRouter(), await newRouter()]
  await routers.db.query(sql`update router set cert_pem = 'broken' where id = ${broken}`)
  const lines: unknown[] = []
  const noting = { ...log, warn: (facts: object) => lines.push(facts) } as typeof log
  const { claimRouterHosts } = routerMethods({ ...routers, certificates, waitForFollowers, log: noting })
  for (const id of [other, broken]) {
    const { refused } = await claimRouterHosts({ routerId: id, hosts: [`${id}.example`] })
    expect(refused).toEqual([])
  }
  expect(lines).toEqual([{ routerId: broken, err: expect.any(Error) }])
})

test('a host at which another router listens is refused, and that router may have it', async () => {
  const [a, b] = [await newRouter(), await newRouter()]
  const listener = {
    address: 'tls:link.example:3023',
    protocol: 'tls',
    costTags: [],
    groups: [],
    localBinding: '',
  }
  const linkListeners = Buffer.from(LinkListeners.encode({ listeners: [listener] }).finish())
  const replica = { id: 'one', incarnation: randomUUID() }
  await takeReplicaId(routers.db, replica, 60_000)
  const row = {
    ...presenceRow(a),
    supportedProtocols: { tls: 'tls://EDGE.example:3022', wss: 'wss://[2001:db8::1]:443' },
    linkListeners: linkListeners.toString('base64'),
  }
  await writePresence(routers.db, replica, [row], [], 0)
  const hosts = ['edge.example', 'link.example', '2001:db8::1', 'free.example']
  expect(await claim(b, ...hosts)).toEqual(hosts.slice(0, 3).map((host) => [host, a]))
  expect(await claim(a, 'edge.example')).toEqual([])
})
