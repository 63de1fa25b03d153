import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { welcome } from './welcome.js'

const address = 'localhost:1280'

test('a password that was made just now is shown, as the shell needs it', async () => {
  const said = await welcome(
    { address, home: '/home/it is' },
    { admin: { created: true, username: 'o', password: "a'b" } },
  )
  expect(said).toContain(`ziti edge login localhost:1280 -u o -p 'a'\\''b' --ca '/home/it is/ca.pem'`)
})

test('later the file that keeps it is named', async () => {
  const home = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(home, { recursive: true }))
  await writeFile(join(home, 'admin-password'), 'secret\n')
  const said = await welcome({ address, home }, { admin: { created: false, username: 'admin' } })
  expect(said).toContain(`-p "$(cat ${home}/admin-password)"`)
  expect(said).not.toContain('secret')
})

test('a password that was given is never shown', async () => {
  const said = await welcome({ address, home: '/nowhere' }, { admin: { created: true, username: 'admin' } })
  expect(said).toContain('ziti edge login localhost:1280 -u admin --ca /nowhere/ca.pem')
})
