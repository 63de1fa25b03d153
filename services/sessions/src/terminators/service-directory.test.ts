import { openLog } from '@overlay/process'
import type { Change, Changes, Position } from '@overlay/rpc'
import type { Source } from '@overlay/store/change-log'
import { expect, test } from 'vitest'
import { openServiceDirectory } from './service-directory.js'

const timeline = '00000000-0000-4000-8000-000000000000'
const at = (number: number): Position => ({ timeline, number })
const row = (number: number, id: string, members: object | null): Change => ({
  kind: 'services',
  id,
  json: Buffer.from(members ? JSON.stringify(members) : ''),
  number,
  atMs: 0,
})

/** Policy: changes reach a follower only when it pulls. */
function startPolicy(first: readonly Change[]) {
  const changes: Change[] = []
  const message = (after: Position | undefined, upto: number, rows: readonly Change[]): Changes => ({
    upto: at(upto),
    after,
    changes: [...rows],
    more: false,
    ageMs: 0,
  })
  const source: Source = {
    schema: 'policy',
    async *load() {
      yield message(undefined, 1, first)
    },
    async *watch(after, signal) {
      yield message(after, after.number, [])
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    },
    pull: async (after) => {
      const later = changes.filter(({ number }) => number > after.number)
      return message(after, changes.at(-1)?.number ?? after.number, later)
    },
    row: async () => Buffer.alloc(0),
  }
  return { source, changes }
}

const log = openLog('sessions', { level: 'silent', format: 'json' })
const wiki = { name: 'wiki', terminatorStrategy: 'sticky', encryptionRequired: true, maxIdleTimeMillis: 5000 }

test('a service that is not in memory yet is found with the changes of policy', async () => {
  const { source, changes } = startPolicy([row(1, 's1', wiki)])
  await using services = await openServiceDirectory(source, log)
  expect(await services.find('s1')).toEqual({ id: 's1', ...wiki })
  changes.push(row(2, 's2', { name: 'blog' }))
  expect(services.get('s2')).toBeUndefined()
  expect(await services.findByName('blog')).toMatchObject({ id: 's2', encryptionRequired: false })
})

test('a name belongs to the service that took it last', async () => {
  const { source, changes } = startPolicy([row(1, 's1', wiki)])
  await using services = await openServiceDirectory(source, log)
  await services.find('s1')
  changes.push(row(2, 's2', wiki), row(3, 's1', null))
  expect(await services.find('s2')).toMatchObject({ name: 'wiki' })
  expect(services.get('s1')).toBeUndefined()
  expect(await services.findByName('wiki')).toMatchObject({ id: 's2' })
})
