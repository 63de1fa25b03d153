import { recordingDeletions, withLoadedRows } from '@overlay/store/change-log'
import { afterAll, expect, test } from 'vitest'
import { identityConsumer } from '../src/consumers/identity.js'
import { connectedIdentities, saveConnections } from '../src/store/identity-connection.js'
import { startStore } from './store.js'

const store = await startStore()
afterAll(() => store[Symbol.asyncDispose]())
const { db } = store.changeLog

const source = {} as Parameters<typeof identityConsumer>[0]
const { effects, recordsDeletionsOf = [] } = identityConsumer(source, { wake: () => undefined })
const { apply, reload } = recordingDeletions('identity', recordsDeletionsOf, effects)
const upto = { timeline: crypto.randomUUID(), number: 1 }
const rowOf = (id: string, json: Buffer) => ({ kind: 'identities', id, json, number: 1, atMs: 0 })

const connected = async (...ids: string[]) => [...(await connectedIdentities(db, ids))].sort()

test('a connection is deleted with its identity, and a late report adds none', async () => {
  await saveConnections(db, ['alice', 'bob'])
  expect(await connected('alice', 'bob')).toEqual(['alice', 'bob'])
  await db.transaction(undefined, (tx) => apply(tx, [rowOf('alice', Buffer.alloc(0))], upto))
  expect(await connected('alice', 'bob')).toEqual(['bob'])
  await saveConnections(db, ['alice', 'bob'])
  expect(await connected('alice', 'bob')).toEqual(['bob'])
})

test('a reload deletes the connections of identities that no longer exist', async () => {
  await saveConnections(db, ['carol', 'dave'])
  const rows = [[rowOf('carol', Buffer.from('{}'))]]
  await db.transaction(undefined, (tx) =>
    withLoadedRows(tx, rows, (loaded) => reload(tx, loaded, { ...upto, number: 2 })),
  )
  expect(await connected('carol', 'dave')).toEqual(['carol'])
})
