import { execFileSync } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkOut, formerRelease } from './former-release.js'

const root = join(import.meta.dirname, '../..')
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proto-'))
  await checkOut(await formerRelease(), join(directory, 'release'))
})
afterAll(() => rm(directory, { recursive: true }))

/** What the rules of proto/buf.yaml have against these files. */
function breaks(proto: string): string {
  const against = ['--against', join(directory, 'release/proto')]
  try {
    execFileSync(join(root, 'node_modules/.bin/buf'), ['breaking', proto, ...against], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    return ''
  } catch (err) {
    const { stdout, stderr } = err as { stdout: string; stderr: string }
    return stdout + stderr
  }
}

test('the last release can call this one, and be called by it', () => {
  expect(breaks(join(root, 'proto'))).toBe('')
})

test.each([
  ['a field with another type', /int32 gather_ms = 2;/, 'string gather_ms = 2;', /gather_ms/],
  ['a field that is deleted without a reservation', /repeated string kinds = 3;.*/, '', /"3"/],
  ['a deleted method', /rpc Head\(HeadRequest\) returns \(Position\);/, '', /"Head"/],
])('%s is found', async (_what, text, replacement, found) => {
  const changed = join(directory, 'changed')
  await cp(join(root, 'proto'), changed, { recursive: true })
  const file = join(changed, 'overlay/change/v1/change.proto')
  const before = await readFile(file, 'utf8')
  expect(before).toMatch(text)
  await writeFile(file, before.replace(text, replacement))
  expect(breaks(changed)).toMatch(found)
})
