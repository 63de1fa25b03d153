import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { welcome } from './welcome.js'

const address = 'localhost:1280'

test('a new password is shown, quoted for the shell', async () => {
  const message = await welcome(
    { address, home: '/home/it is' },
    { admin: { created: true, username: 'o', password: "a'b" } },
  )
  expect(message).toContain(`ziti edge login localhost:1280 -u o -p 'a'\\''b' --ca '/home/it is/ca.pem'`)
})

test('afterwards its file is named', async () => {
  const home = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(home, { recursive: true }))
  await writeFile(join(home, 'admin-password'), 'secret\n')
  const message = await welcome({ address, home }, { admin: { created: false, username: 'admin' } })
  expect(message).toContain(`-p "$(cat ${home}/admin-password)"`)
  expect(message).not.toContain('secret')
})

test('a configured password is never shown', async () => {
  const message = await welcome(
    { address, home: '/nowhere' },
    { admin: { created: true, username: 'admin' } },
  )
  expect(message).toContain('ziti edge login localhost:1280 -u admin --ca /nowhere/ca.pem')
})
