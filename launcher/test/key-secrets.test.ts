import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Manifest } from '@overlay/maintenance/snapshot'
import { seal } from '@overlay/store/postgres'
import { expect, onTestFinished, test } from 'vitest'
import { requireKeySecrets } from '../src/home/key-secrets.js'
import { newSecrets } from '../src/home/secrets.js'

const secrets = newSecrets()
const nothing = '\\N' // as COPY writes it

async function requireFor(keys: readonly (readonly [id: string, privateKey: string])[]): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  for (const schema of ['pki', 'identity']) await mkdir(join(directory, schema))
  await writeFile(join(directory, 'pki/key.copy'), keys.map((row) => `${row.join('\t')}\n`).join(''))
  await writeFile(join(directory, 'identity/second_factor.copy'), '')
  const table = (name: string, columns: string[]) => ({
    migrations: [],
    tables: [{ name, columns, rows: 0, bytes: 0, sha256: '' }],
  })
  const manifest: Manifest = {
    format: 1,
    madeAt: new Date().toISOString(),
    schemas: {
      pki: table('key', ['id', 'private_key']),
      identity: table('second_factor', ['identity_id', 'sealed']),
    },
  }
  await requireKeySecrets(directory, manifest, secrets)
}

const sealed = seal(secrets.keySecrets.pki, 'k1', 'private')

test('a snapshot may have a root whose private key is not in the network', async () => {
  await requireFor([
    ['root', nothing],
    ['k1', sealed],
  ])
})

test('a snapshot of another installation is refused, also if its root has no private key', async () => {
  const foreign = seal(newSecrets().keySecrets.pki, 'k2', 'private')
  await expect(
    requireFor([
      ['root', nothing],
      ['k2', foreign],
    ]),
  ).rejects.toThrow(/key secret is not/)
})
