import { edgeRouter, terminator } from '@overlay/model'
import { type EntityServiceService, type Methods, ownContext } from '@overlay/rpc'
import { expect, test } from 'vitest'
import type { ChangeLog } from '../src/change-log/change-log.js'
import { entityService } from '../src/kind-store/entity-service.js'
import { kind } from '../src/kind-store/kind.js'
import { decodeView } from '../src/kind-store/views.js'

const context = ownContext(new AbortController().signal)
const written = { id: 'one', position: undefined }
const selection = { ids: ['one'], roles: [], symbol: '', value: '' }
const view = async () => []
const bytes = (body: object) => Buffer.from(JSON.stringify(body))

/** A change log whose database answers with these rows. */
const changeLogOver = (rows: readonly object[]): ChangeLog =>
  ({ db: { query: async () => ({ rows }) } }) as unknown as ChangeLog

const serviceOver = (rows: readonly object[]): Methods<EntityServiceService> =>
  entityService({
    changeLog: changeLogOver(rows),
    kinds: [
      kind(terminator, { view }),
      kind(
        edgeRouter,
        { view },
        {
          operations: (uniform) => ({
            create: async () => written,
            delete: ({ id }, context) => uniform.delete({ kind: 'nothing', id }, context),
          }),
        },
      ),
    ],
    names: async () => new Map(),
    foreign: {
      identities: {
        view: async (_db, ids) => ids.map((id) => (id === 'known' ? { isOnline: true } : undefined)),
        selects: { terminators: async () => selection },
      },
    },
    counts: { extra: async () => 3 },
  })

test('a kind answers its own operations, and may call the uniform ones', async () => {
  const service = serviceOver([])
  expect(await service.create({ kind: 'edge-routers', json: bytes({}) }, context)).toBe(written)
  await expect(service.delete({ kind: 'edge-routers', id: 'a' }, context)).rejects.toThrow("kind 'nothing'")
  await expect(
    service.get({ ref: { kind: 'terminators', id: 'a' }, perspective: undefined }, context),
  ).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('entities of other services have the views and links of this one', async () => {
  const service = serviceOver([])
  const { json } = await service.view({ kind: 'identities', ids: ['known', 'other'] }, context)
  expect(json.map(decodeView)).toEqual([{ isOnline: true }, undefined])
  const from = { kind: 'identities', id: 'known' }
  expect(await service.select({ from, link: 'terminators', perspective: undefined }, context)).toBe(selection)
})

test('counts stand beside the rows of the kinds', async () => {
  const { rows } = await serviceOver([{ kind: 'terminators', rows: 2 }]).count({}, context)
  expect(rows).toEqual({ terminators: 2, extra: 3 })
})
