import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { busPrograms, type TlsBus, type TlsPostgres, tlsBus, tlsPostgres } from '@overlay/launcher/testing'
import { services } from '@overlay/store/postgres/prepare-and-migrate'
import type { KubernetesObject } from '../kubernetes/kustomize.js'
import type { OutsideServer } from './cluster.js'
import { developmentAdmin } from './tested.js'

/** What an operator of the production overlay provides, as docs/kubernetes.md says. */
export interface Operator extends AsyncDisposable {
  /** A Postgres and a NATS that require certificates and passwords. */
  readonly servers: readonly OutsideServer[]
  readonly secrets: readonly KubernetesObject[]
}

const [DATABASE, BUS] = ['db.example.org', 'nats.example.org'] as const

export async function startOperator(): Promise<Operator> {
  const postgres = await tlsPostgres({ hosts: [DATABASE], ownerPassword: newPassword() })
  const bus = await tlsBus(busPrograms.at(-1) ?? 'built-in', [BUS])
  const portOf = (url: string): number => Number(new URL(url).port)
  const at = process.pid % 14 // others may run these tests on the same machine
  return {
    servers: [
      { name: DATABASE, address: `192.0.2.${1 + at}`, port: 5432, localPort: portOf(postgres.ownerUrl) },
      { name: BUS, address: `192.0.2.${17 + at}`, port: 4222, localPort: portOf(bus.url) },
    ],
    secrets: await secretsFor(postgres, bus),
    async [Symbol.asyncDispose]() {
      await bus[Symbol.asyncDispose]()
      await postgres[Symbol.asyncDispose]()
    },
  }
}

/** The secrets of the document, with their keys. */
export async function documentedSecrets(): Promise<Readonly<Record<string, readonly string[]>>> {
  const text = await readFile(join(import.meta.dirname, '../../docs/kubernetes.md'), 'utf8')
  const [, rows = ''] = /\| Secret \| Keys \|.*\n.*\n((?: *\|.*\n)+)/.exec(text) ?? []
  const quoted = (cell: string): string[] => [...cell.matchAll(/`([\w.-]+)`/g)].map(([, name = '']) => name)
  return Object.fromEntries(
    rows.split('\n').flatMap((row) => {
      const [, names = '', keys = ''] = row.split('|')
      return quoted(names).map((name) => [name, quoted(keys)])
    }),
  )
}

async function secretsFor(postgres: TlsPostgres, bus: TlsBus): Promise<readonly KubernetesObject[]> {
  const databases = services.map((service) => [
    `${service}-database`,
    { url: `postgres://overlay_${service}:${newPassword()}@${DATABASE}/overlay` },
  ])
  const secrets = {
    'database-owner': {
      url: `postgres://overlay:${new URL(postgres.ownerUrl).password}@${DATABASE}/overlay`,
    },
    ...Object.fromEntries(databases),
    nats: { url: bus.url.replace(/localhost:\d+/, `${BUS}:4222`) },
    'identity-key': { secret: newPassword() },
    'pki-key': { secret: newPassword() },
    admin: developmentAdmin,
    'database-tls': await filesOf(postgres.directory),
    'nats-tls': await filesOf(bus.directory),
  }
  return Object.entries(secrets).map(([name, stringData]) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    stringData,
  }))
}

const newPassword = (): string => randomBytes(36).toString('base64url')

async function filesOf(directory: string): Promise<Readonly<Record<string, string>>> {
  const names = (await readdir(directory)).filter((name) => !name.startsWith('.')).sort()
  return Object.fromEntries(
    await Promise.all(
      names.map(async (name) => [name, await readFile(join(directory, name), 'utf8')] as const),
    ),
  )
}
