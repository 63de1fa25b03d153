import { createHash, X509Certificate } from 'node:crypto'
import type { RowChange } from '@overlay/store/change-log'
import type { Tx } from '@overlay/store/postgres'
import { isIssuedBy, isSameKey, trustDomainOf } from '@overlay/x509'
import { isTokenRole, type KeyRole, keyOf, type TokenRole } from '../domain/planned-key.js'
import { remove } from '../store/key-states.js'
import { addKey, type Key, replaceCertificate } from '../store/keys.js'
import { addTokenKey } from '../store/token-keys.js'
import type { AllKeys } from './all-keys.js'
import { KeyRefused } from './key-refused.js'
import { tokenKeyOf } from './new-keys.js'
import { crossCertificate, type StepDeps } from './steps.js'
import { trustDomainFor } from './trust-domain.js'

/** A key that the operator provides, with its certificate and path, which have been checked. */
export interface ProvidedKey {
  /** PKCS#8, PEM. */
  readonly privateKey: string
  /** PEM. Undefined: keys of tokens have none. */
  readonly certificate: string | undefined
  /** PEM of the authorities above, the root last. Empty: it is a root, or a key of tokens. */
  readonly chain: readonly string[]
}

/** Adds it as the next key, or replaces the certificate of the active or the next one. */
export async function addProvided(
  tx: Tx,
  keys: AllKeys,
  role: KeyRole,
  material: ProvidedKey,
  deps: StepDeps,
): Promise<readonly RowChange[]> {
  return isTokenRole(role)
    ? addProvidedTokenKey(tx, keys, role, material, deps)
    : addProvidedKey(tx, keys, role, material, deps)
}

async function addProvidedTokenKey(
  tx: Tx,
  { tokens }: AllKeys,
  role: TokenRole,
  { privateKey }: ProvidedKey,
  { keySecret, now }: StepDeps,
): Promise<readonly RowChange[]> {
  const key = tokenKeyOf(privateKey)
  const same = tokens.find(({ id }) => id === key.id)
  if (same) return refuseRetired(same.state, role)
  const next = keyOf(tokens, role, 'next')
  return [
    ...(next ? [await remove(tx, next)] : []), // it has signed nothing
    await addTokenKey(tx, keySecret, key, { role, state: 'next', source: 'provided' }, now),
  ]
}

async function addProvidedKey(
  tx: Tx,
  { certified }: AllKeys,
  role: Key['role'],
  { privateKey, certificate: pem = '', chain }: ProvidedKey,
  deps: StepDeps,
): Promise<readonly RowChange[]> {
  const between = chain.slice(0, -1)
  const root = chain.at(-1)
  const chainText = between.join('')
  const same = certified.find((key) => key.role === role && hasSameKey(key.pem, pem))
  if (same && (same.state === 'retired' || (same.pem === pem && same.chain === chainText)))
    return refuseRetired(same.state, role)

  const changes: RowChange[] = []
  const next = keyOf(certified, role, 'next')
  if (!same && next) changes.push(await remove(tx, next))
  if (root !== undefined && !leadsToRoot(between.at(-1) ?? pem, certified))
    changes.push(...(await addRoot(tx, certified, root, role === 'signing' ? 'next' : 'retired', deps)))
  if (same) return [...changes, await replaceCertificate(tx, same, pem, chainText)]
  const isAuthority = role !== 'server'
  const added = {
    ...({ role, state: 'next', source: 'provided', pem, privateKey, chain: chainText } as const),
    trustDomain: isAuthority ? trustDomainFor(certified, deps) : undefined,
    crossPem: role === 'root' ? await crossCertificate(pem, certified, deps) : undefined,
  }
  return [...changes, await addKey(tx, deps.keySecret, added, deps.now)]
}

/** A root that comes with another key only anchors trust. That of the server's certificate never signs: it is retired. */
async function addRoot(
  tx: Tx,
  certified: readonly Key[],
  pem: string,
  state: 'next' | 'retired',
  deps: StepDeps,
): Promise<readonly RowChange[]> {
  const next = state === 'next' ? keyOf(certified, 'root', 'next') : undefined
  const key = {
    ...({ role: 'root', state, source: 'provided', pem, privateKey: undefined } as const),
    crossPem: await crossCertificate(pem, certified, deps),
    trustDomain: trustDomainFor(certified, deps),
  }
  return [...(next ? [await remove(tx, next)] : []), await addKey(tx, deps.keySecret, key, deps.now)]
}

function refuseRetired(state: Key['state'], role: KeyRole): readonly RowChange[] {
  if (state === 'retired')
    throw new KeyRefused('exists', `this ${role} key has been retired: provide a new one`)
  return []
}

const leadsToRoot = (pem: string, certified: readonly Key[]): boolean =>
  certified.some((key) => key.role === 'root' && isIssuedBy(pem, key.pem))

const hasSameKey = (pem: string, other: string): boolean =>
  isSameKey(new X509Certificate(pem).publicKey, new X509Certificate(other).publicKey)

/**
 * wire: what a network with these keys is called: after the first SPIFFE id on the way from the certificate of the servers,
 * or of the signing authority, to the root, otherwise after the SHA-1 digest of the root of the signing authority.
 * Undefined: the keys say nothing.
 */
export function trustDomainFrom(
  provided: readonly { readonly role: KeyRole; readonly material: ProvidedKey }[],
): { readonly id?: string | undefined; readonly digest?: string | undefined } {
  const pathFor = (role: KeyRole): readonly string[] => {
    const { certificate, chain = [] } = provided.find((key) => key.role === role)?.material ?? {}
    return certificate === undefined ? [] : [certificate, ...chain]
  }
  const [server, signing] = [pathFor('server'), pathFor('signing')]
  const root = signing.at(-1)
  return {
    id: [...server, ...signing].map(trustDomainOf).find((domain) => domain !== undefined),
    digest: root && createHash('sha1').update(new X509Certificate(root).raw).digest('hex'),
  }
}
