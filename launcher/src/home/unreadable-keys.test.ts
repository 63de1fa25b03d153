import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { unreadableTls } from './unreadable-keys.js'

test('a directory for TLS that the account of the processes cannot read is reported in one line', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const key = join(directory, 'tls.key')
  await writeFile(key, 'key', { mode: 0o600 })
  const lines = () =>
    unreadableTls(
      { OVERLAY_DATABASE_TLS: directory, OVERLAY_NATS_TLS: undefined },
      { uid: 61_000, gid: 61_000 },
    )
  const expected = [expect.stringMatching(/^OVERLAY_DATABASE_TLS: user id 61000.* cannot read all of .*$/)]
  expect(await lines()).toEqual(expected)
  await chmod(directory, 0o755)
  expect(await lines()).toEqual(expected)
  await chmod(key, 0o644)
  expect(await lines()).toEqual([])
  expect(await unreadableTls({ OVERLAY_DATABASE_TLS: directory }, {})).toEqual([])
})
