import { generateKeyPairSync, type KeyPairKeyObjectResult, randomUUID } from 'node:crypto'
import type { ChangeLog, RowChange } from '@overlay/platform/change-log'
import type { Tx } from '@overlay/platform/postgres'
import type { Context } from '@overlay/rpc'
import { issueCa, issueServer } from '../domain/certificate.js'
import { type Holder, hostsOf, notAfterOf, notBeforeOf, openSigner } from '../domain/signer.js'
import { trustDomainOf } from '../domain/trust-domain.js'
import {
  activeKey,
  addActiveKey,
  type Key,
  type KeyRole,
  lockKeys,
  readKeys,
  replaceCertificate,
} from '../store/keys.js'

export interface Wanted {
  readonly secret: string
  /** Names under which gateways are reached. A certificate that has others too keeps them: tokens name them. */
  readonly hosts: readonly string[]
  readonly now: Date
}

/**
 * Makes what is missing: a root, an authority that signs, the key of the gateways and its certificate. The latter is
 * made anew over the same key when it lacks a name or has little time left, so that outstanding tokens stay valid.
 * Answers whether anything was made.
 */
export async function ensureKeys(changeLog: ChangeLog, context: Context, wanted: Wanted): Promise<boolean> {
  const { result } = await changeLog.write(context, async (tx) => {
    await lockKeys(tx)
    const changes = await missing(tx, wanted)
    return { result: changes.length > 0, changes }
  })
  return result
}

async function missing(tx: Tx, { secret, hosts, now }: Wanted): Promise<readonly RowChange[]> {
  const keys = await readKeys(tx, secret)
  const changes: RowChange[] = []
  const obtain = async (role: KeyRole, make: () => Promise<Holder>): Promise<Holder> => {
    const known = activeKey(keys, role)
    if (known) return known
    const made = await make()
    changes.push(await addActiveKey(tx, secret, role, made))
    return made
  }

  const root = await obtain('root', () =>
    issueCa({ privateKey: newPrivateKey(), commonName: 'overlay root', trustDomain: randomUUID(), now }),
  )
  const signing = await obtain('signing', async () =>
    issueCa({
      privateKey: newPrivateKey(),
      commonName: 'overlay signing',
      trustDomain: trustDomainOf(root.pem),
      now,
      signer: openSigner(root),
    }),
  )
  await obtain('server', async () =>
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
  const known = new Set(hostsOf(pem))
  const life = notAfterOf(pem).getTime() - notBeforeOf(pem).getTime()
  return hosts.some((host) => !known.has(host)) || notAfterOf(pem).getTime() - now.getTime() < life / 3
}

const newPrivateKey = (): string => pkcs8Of(generateKeyPairSync('ec', { namedCurve: 'P-256' }))

/** RSA, because enrollment tokens are signed with it: C SDKs before 0.32 verify no other signature. */
const newServerKey = (): string => pkcs8Of(generateKeyPairSync('rsa', { modulusLength: 2048 }))

const pkcs8Of = ({ privateKey }: KeyPairKeyObjectResult): string =>
  privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
