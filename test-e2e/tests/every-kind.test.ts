import { kinds, symbolsOf } from '@overlay/model'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { management } from '../../gateway/src/api/operations.js'
import type { Admin } from '../admin.js'
import { openClient } from '../client.js'
import { type Network, startNetwork } from '../network.js'
import { samples } from './samples.js'

let network: Network
let admin: Admin

beforeAll(async () => {
  network = await startNetwork({ shared: true })
  admin = await network.admin()
})
afterAll(() => network[Symbol.asyncDispose]())

const mounted = (operation: string): boolean => operation in management
const listed = [...kinds.values()].filter(({ kind }) => mounted(`GET /${kind}`))
const written = listed.filter(({ kind }) => mounted(`POST /${kind}`) && kind in samples)
const kebab = (name: string): string => name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)
const codeOf = async (method: string, path: string, body?: unknown) => {
  const answer = await admin.call(method, path, body)
  return [answer.status, answer.body.error?.code]
}
const notFound = [404, 'NOT_FOUND']

test('every kind that the API creates has a sample', () => {
  const creatable = listed.filter(({ kind }) => mounted(`POST /${kind}`)).map(({ kind }) => kind)
  expect(Object.keys(samples).sort()).toEqual(creatable.sort())
})

describe.each(listed.map((entity) => [entity.kind, entity] as const))('%s', (kind, entity) => {
  test('a list has a page of ten rows, and names the symbols for filters', async () => {
    const { body } = await admin.call('GET', `/${kind}`)
    expect(body.meta).toMatchObject({ pagination: { limit: 10, offset: 0 } })
    const fields = body.meta.filterableFields as string[]
    expect([...fields].sort()).toEqual([...symbolsOf(entity).keys()].sort())
  })

  test('every symbol can be compared with null, and every symbol except sets and tags can be sorted by', async () => {
    for (const [symbol, { type }] of symbolsOf(entity)) {
      if (type === 'tags') continue
      const path = type === 'strings' ? `not isEmpty(${symbol})` : `${symbol} != null`
      const answer = await admin.call('GET', `/${kind}?limit=1&filter=${encodeURIComponent(path)}`)
      expect([symbol, answer.status]).toEqual([symbol, 200])
      const sorted = await admin.call('GET', `/${kind}?limit=1&sort=${symbol}`)
      expect([symbol, sorted.status]).toEqual([symbol, type === 'strings' ? 400 : 200])
    }
  })

  test('attributes in use are listed whole, or by limit and offset', async () => {
    const path = `/${kebab(entity.singular)}-role-attributes`
    if (!mounted(`GET ${path}`)) return
    const words = Array.from({ length: 1203 }, (_, i) => `many-${String(i).padStart(4, '0')}`)
    const body = (await samples[kind]?.(admin, `${kind}-attributes`)) as object
    const id = await admin.create(kind, { ...body, roleAttributes: [...words].reverse() })
    const list = async (query: string) => {
      const { body } = await admin.call(
        'GET',
        `${path}?filter=${encodeURIComponent('id contains "many-"')}${query}`,
      )
      return [body.data, body.meta.pagination]
    }
    const all = 2 ** 63 // as JSON numbers go
    const totalCount = words.length
    expect(await list('')).toEqual([words, { limit: all, offset: 0, totalCount }])
    expect(await list('&limit=-1&offset=2&sort=name')).toEqual([
      words.slice(2),
      { limit: all, offset: 2, totalCount },
    ])
    expect(await list('&limit=5&offset=1200')).toEqual([
      words.slice(1200),
      { limit: 5, offset: 1200, totalCount },
    ])
    expect(await list('&limit=2&offset=1')).toEqual([words.slice(1, 3), { limit: 2, offset: 1, totalCount }])
    expect(await list(`${encodeURIComponent(' sort by id desc skip 1 limit none')}&limit=3`)).toEqual([
      words.toReversed().slice(1),
      { limit: all, offset: 1, totalCount },
    ])
    await admin.request('DELETE', `/${kind}/${id}`)
  })

  test('an invalid filter is refused', async () => {
    expect(await codeOf('GET', `/${kind}?filter=nonsense%20%3D%201`)).toEqual([400, 'INVALID_FILTER'])
    expect(await codeOf('GET', `/${kind}?filter=id%20%3D`)).toEqual([400, 'INVALID_FILTER'])
  })

  test('a missing entity is not found', async () => {
    for (const method of ['GET', 'DELETE'])
      if (mounted(`${method} /${kind}/{id}`))
        expect(await codeOf(method, `/${kind}/nothing`)).toEqual(notFound)
  })

  test('a list requires a session', async () => {
    using anonymous = openClient(
      { addresses: [network.address], caPem: network.caPem },
      '/edge/management/v1',
    )
    const { status, body } = await anonymous.call('GET', `/${kind}`)
    expect([status, body.error?.code]).toEqual([401, 'UNAUTHORIZED'])
  })
})

describe.each(written.map((entity) => [entity.kind, entity] as const))('%s', (kind, entity) => {
  const createSample = async (name: string) => {
    const body = await samples[kind]?.(admin, name)
    return { body: body as Record<string, unknown>, id: await admin.create(kind, body as object) }
  }
  /** A patch with the members that it requires. */
  const patch = (id: string, body: Record<string, unknown>, more: object) => {
    const needed = Object.entries(entity.fields).filter(([, { write }]) => write[2] === 'R')
    const required = Object.fromEntries(needed.map(([name]) => [name, body[name]]))
    return ['PATCH', `/${kind}/${id}`, { ...required, ...more }] as const
  }
  const get = (id: string) => admin.request<Record<string, unknown>>('GET', `/${kind}/${id}`)
  const isNamed = 'name' in entity.fields

  test('a new entity can be read, found, tagged and deleted', async () => {
    const { id, body } = await createSample(`${kind}-a`)
    const detail = await get(id)
    expect(detail).toMatchObject({ id, _links: { self: { href: `./${kind}/${id}` } } })
    if (isNamed) expect(detail.name).toBe(body.name)
    expect(await admin.request('GET', `/${kind}?filter=id%20%3D%20%22${id}%22`)).toMatchObject([{ id }])

    if (mounted(`PATCH /${kind}/{id}`)) {
      await admin.request(...patch(id, body, { tags: { a: 'b', n: 1, nested: { gone: true } } }))
      const tagged = await get(id)
      expect(tagged).toEqual({ ...detail, tags: { a: 'b', n: 1 }, updatedAt: tagged.updatedAt })
      expect(await codeOf('PATCH', `/${kind}/${id}`, {})).toEqual([400, 'COULD_NOT_VALIDATE'])
    }
    await admin.request('DELETE', `/${kind}/${id}`)
    expect(await codeOf('GET', `/${kind}/${id}`)).toEqual(notFound)
    expect(await codeOf('DELETE', `/${kind}/${id}`)).toEqual(notFound)
  })

  test('a replace sets its members, and all others to their defaults', async () => {
    if (!mounted(`PUT /${kind}/{id}`)) return
    const { id, body } = await createSample(`${kind}-b`)
    const before = await get(id)
    await admin.request(...patch(id, body, { tags: { a: 'b' } }))
    await admin.request('PUT', `/${kind}/${id}`, body)
    const after = await get(id)
    expect(after).toEqual({ ...before, updatedAt: after.updatedAt })
    expect(await codeOf('PUT', `/${kind}/nothing`, body)).toEqual(notFound)
  })

  test('appData keeps objects and lists', async () => {
    if (!('appData' in entity.fields)) return
    const body = (await samples[kind]?.(admin, `${kind}-app`)) as Record<string, unknown>
    const stored = async (id: string) => (await get(id)).appData
    const first = { a: { b: ['c', { d: null }] }, list: [1, [true]], text: 'x' }
    const id = await admin.create(kind, { ...body, appData: first })
    expect(await stored(id)).toEqual(first)
    await admin.request('PUT', `/${kind}/${id}`, { ...body, appData: { replaced: [{}] } })
    expect(await stored(id)).toEqual({ replaced: [{}] })
    await admin.request(...patch(id, body, { appData: { patched: { deep: [] } } }))
    expect(await stored(id)).toEqual({ patched: { deep: [] } })
    await admin.request('PUT', `/${kind}/${id}`, { ...body, appData: null })
    expect(await stored(id)).toEqual({})
  })

  test('a missing required member is named in the error', async () => {
    const body = (await samples[kind]?.(admin, `${kind}-c`)) as Record<string, unknown>
    const required = Object.entries(entity.fields).filter(([, { write }]) => write.startsWith('R'))
    for (const [name] of required.filter(([field]) => !field.includes('.'))) {
      const { [name]: _, ...rest } = body
      const answer = await admin.call('POST', `/${kind}`, rest)
      expect([name, answer.status]).toEqual([name, 400])
      expect(answer.body.error).toMatchObject({ code: 'COULD_NOT_VALIDATE', cause: { field: name } })
    }
  })

  test('a taken or empty name is refused, and nothing changes', async () => {
    if (!isNamed) return
    const { id, body } = await createSample(`${kind}-d`)
    const other = await createSample(`${kind}-e`)
    const refused = [400, 'COULD_NOT_VALIDATE']
    const before = await get(id)
    expect(await codeOf('POST', `/${kind}`, body)).toEqual(refused)
    expect(await codeOf(...patch(id, body, { name: other.body.name }))).toEqual(refused)
    expect(await codeOf(...patch(id, body, { name: '' }))).toEqual(refused)
    expect(await get(id)).toEqual(before)
  })
})
