import { generateKeyPairSync, type KeyPairKeyObjectResult, randomUUID } from 'node:crypto'
import type { ChangeLog, RowChange } from '@overlay/platform/change-log'
import type { Tx } from '@overlay/platform/postgres'
import type { Context } from '@overlay/rpc'
import {
  type CertifiedKey,
  hostsOf,
  issueCa,
  issueServer,
  notAfterOf,
  notBeforeOf,
  openSigner,
  trustDomainOf,
} from '@overlay/x509'
import {
  activeKey,
  addActiveKey,
  type Key,
  type KeyRole,
  lockKeys,
  readKeys,
  replaceCertificate,
} from '../store/keys.js'

export interface EnsureKeysOptions {
  readonly secret: string
  /** Names under which gateways are reached. Other names of an existing certificate stay: tokens name them. */
  readonly hosts: readonly string[]
  readonly now: Date
}

/**
 * Creates what is missing: a root, a signing authority, the key of the gateways and its certificate. Replaces that
 * certificate over the same key when it lacks a name or has less than a third of its life left, so that outstanding
 * tokens stay valid. Returns whether it created anything. Processes may call it at the same time.
 */
export async function ensureKeys(
  changeLog: ChangeLog,
  context: Context,
  options: EnsureKeysOptions,
): Promise<boolean> {
  const { result } = await changeLog.write(context, async (tx) => {
    await lockKeys(tx)
    const changes = await createMissing(tx, options)
    return { result: changes.length > 0, changes }
  })
  return result
}

async function createMissing(
  tx: Tx,
  { secret, hosts, now }: EnsureKeysOptions,
): Promise<readonly RowChange[]> {
  const keys = await readKeys(tx, secret)
  const changes: RowChange[] = []
  const ensure = async (role: KeyRole, create: () => Promise<CertifiedKey>): Promise<CertifiedKey> => {
    const existing = activeKey(keys, role)
    if (existing) return existing
    const created = await create()
    changes.push(await addActiveKey(tx, secret, role, created))
    return created
  }

  const root = await ensure('root', () =>
    issueCa({ privateKey: newPrivateKey(), commonName: 'overlay root', trustDomain: randomUUID(), now }),
  )
  const signing = await ensure('signing', async () =>
    issueCa({
      privateKey: newPrivateKey(),
      commonName: 'overlay signing',
      trustDomain: trustDomainOf(root.pem),
      now,
      signer: openSigner(root),
    }),
  )
  await ensure('server', async () =>
    issueServer(openSigner(signing), { privateKey: newServerKey(), hosts, now }),
  )

  const server = activeKey(keys, 'server')
  if (server && isOutdated(server, hosts, now)) {
    const names = [...new Set([...hosts, ...hostsOf(server.pem)])]
    const { privateKey } = server
    const { pem } = await issueServer(openSigner(signing), { privateKey, hosts: names, now })
    changes.push(await replaceCertificate(tx, server, pem))
  }
  return changes
}

function isOutdated({ pem }: Key, hosts: readonly string[], now: Date): boolean {
  const certified = new Set(hostsOf(pem))
  const life = notAfterOf(pem).getTime() - notBeforeOf(pem).getTime()
  return hosts.some((host) => !certified.has(host)) || notAfterOf(pem).getTime() - now.getTime() < life / 3
}

const newPrivateKey = (): string => pkcs8Of(generateKeyPairSync('ec', { namedCurve: 'P-256' }))

/** RSA, because enrollment tokens are signed with it: C SDKs before 0.32 verify no other signature. */
const newServerKey = (): string => pkcs8Of(generateKeyPairSync('rsa', { modulusLength: 2048 }))

const pkcs8Of = ({ privateKey }: KeyPairKeyObjectResult): string =>
  privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
