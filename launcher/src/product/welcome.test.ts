import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ignoredCredentials, welcome } from './welcome.js'

const address = 'localhost:1280'

test('a new password is shown, quoted for the shell', async () => {
  const message = await welcome(
    { address, home: '/home/it is' },
    { admin: { created: true, username: 'o', password: "a'b" } },
    { isTerminal: true },
  )
  expect(message).toContain(`ziti edge login localhost:1280 -u o -p 'a'\\''b' --ca '/home/it is/ca.pem'`)
})

test('a new password is not shown where it would be kept', async () => {
  const admin = { created: true, username: 'o', password: 'secret' }
  const message = await welcome({ address, home: '/nowhere' }, { admin }, { isTerminal: false })
  expect(message).not.toContain('secret')
})

test('afterwards its file is named', async () => {
  const home = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(home, { recursive: true }))
  await writeFile(join(home, 'admin-password'), 'secret\n')
  const message = await welcome(
    { address, home },
    { admin: { created: false, username: 'admin' } },
    { isTerminal: true },
  )
  expect(message).toContain(`-p "$(cat ${home}/admin-password)"`)
  expect(message).not.toContain('secret')
})

test('a password that this home does not know is not claimed to be given', async () => {
  const message = await welcome(
    { address, home: '/nowhere' },
    { admin: { created: false, username: 'admin' } },
    { isTerminal: true },
  )
  expect(message).toContain('password       as in the database; npm run admin-password sets a new one')
  expect(message).not.toContain('given')
})

test.each([
  ['nothing', 'admin', undefined, true, []],
  ['nothing, as the administrator is new', 'boss', 'secret', true, []],
  ['nothing, as neither is set', 'admin', undefined, false, []],
  [
    'the password',
    'admin',
    'secret',
    false,
    [
      'OVERLAY_ADMIN_PASSWORD is ignored: the administrator root exists; npm run admin-password sets a new password',
    ],
  ],
  [
    'another name',
    'boss',
    undefined,
    false,
    ['OVERLAY_ADMIN_USERNAME is ignored: the administrator root exists'],
  ],
  ['nothing, as the name is the same', 'root', undefined, false, []],
])('ignored is %s', (_what, adminUsername, adminPassword, created, lines) => {
  expect(ignoredCredentials({ adminUsername, adminPassword }, { created, username: 'root' })).toEqual(lines)
})

test('a configured password is never shown', async () => {
  const message = await welcome(
    { address, home: '/nowhere' },
    { admin: { created: true, username: 'admin' } },
    { isTerminal: true },
  )
  expect(message).toContain('ziti edge login localhost:1280 -u admin --ca /nowhere/ca.pem')
})
