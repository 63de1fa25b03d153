import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isOlder, OLDEST_RELEASE } from '@overlay/store/postgres/releases'
import { describe, expect, test } from 'vitest'
import { refusalsOf } from './additive.js'
import { formerRelease, git } from './former-release.js'

const root = join(import.meta.dirname, '../..')

test('migrations since the last release let it work beside this one, and released ones do not change', async () => {
  const release = await formerRelease()
  const lines = await git('diff', '--find-renames=100%', '--name-status', release, '--', '*/migrations/*.sql')
  const changes = lines
    .split('\n')
    .filter(Boolean)
    .map((line) => line.split('\t'))
  const refused: string[] = []
  for (const [state, path = ''] of changes) {
    if (state === 'R100') continue // moved: the database knows names, not folders
    if (state === 'A') {
      const refusals = refusalsOf(await readFile(join(root, path), 'utf8'), OLDEST_RELEASE)
      refused.push(...refusals.map((why) => `${path} ${why}`))
    } else refused.push(`${path} is part of ${release}`)
  }
  expect(refused).toEqual([])
})

test('the version is newer than the last release, which is the oldest that works with the schemas', async () => {
  const release: string = JSON.parse(await git('show', `${await formerRelease()}:package.json`)).version
  if (release.endsWith('-dev')) return // the history of this clone does not reach back to a release
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  expect(isOlder(release, version)).toBe(true)
  expect(OLDEST_RELEASE).toBe(release)
})

describe('a migration', () => {
  test.each([
    ['alter table a drop column b;'],
    ['drop table a;'],
    ['drop view a;'],
    ['alter table a rename column b to c;'],
    ['alter table a alter column b type bigint;'],
    ['alter table a alter b set data type bigint;'],
    ['alter table a alter column b set not null;'],
    ['alter table a add column b text not null;'],
    ['alter table a add constraint b check (c is not null);'],
    ['create unique index a on b (c);'],
    ['drop function a;'],
    ['drop trigger a on b;'],
    ['alter table a\n  add column b text not null default 0,\n  add column c text not null;'],
  ])('is refused: %s', (sql) => {
    expect(refusalsOf(sql, '0.2.0')).not.toEqual([])
    for (const release of ['0.1.0', '0.2.0'])
      expect(refusalsOf(`-- unused since ${release}: b\n${sql}`, '0.2.0')).toEqual([])
    expect(refusalsOf(`-- unused since 0.3.0: b\n${sql}`, '0.2.0')).not.toEqual([])
  })
  test.each([
    ['create table a (b text not null);'],
    ['alter table a add column b text;'],
    ["alter table a add column b text not null default '';"],
    ['-- true before: c is never null\nalter table a add constraint b check (c is not null);'],
    [
      'create table a (b text); create unique index c on a (b); alter table a add constraint d check (b > 0);',
    ],
    ['drop index a; -- drop table d'],
    ['alter table a alter column b drop not null;'],
  ])('is accepted: %s', (sql) => {
    expect(refusalsOf(sql, '0.2.0')).toEqual([])
  })
})
