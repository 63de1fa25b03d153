import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { RowChange } from '@overlay/store/change-log'
import type { Tx } from '@overlay/store/postgres'
import { fingerprintOfPem, isSameKey } from '@overlay/x509'
import { type KeyRole, keyOf } from '../domain/key-plan.js'
import { remove } from '../store/key-states.js'
import { addKey, type Key, replaceCertificate } from '../store/keys.js'
import { addTokenKey, type NewTokenKey } from '../store/token-keys.js'
import { type AllKeys, isSelfSigned } from './all-keys.js'
import { pathOf } from './certificate-path.js'
import { KeyRefused } from './key-refused.js'
import { tokenKeyOf } from './new-keys.js'
import { crossCertificate, type StepDeps } from './steps.js'
import { trustDomainFor } from './trust-domain.js'

/** A key that the operator provides. Its strength, purposes and dates have been checked. */
export interface ProvidedKey {
  /** PKCS#8, PEM. Undefined: a root that only anchors trust. */
  readonly privateKey: string | undefined
  /** PEM. Unused for keys of tokens. */
  readonly certificate: string
  /** PEM of the certificates up to its root, that included unless the network has it. In any order. */
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
  return role === 'token'
    ? addProvidedTokenKey(tx, keys, material, deps)
    : addProvidedKey(tx, keys, role, material, deps)
}

async function addProvidedTokenKey(
  tx: Tx,
  { tokens }: AllKeys,
  { privateKey = '' }: ProvidedKey,
  { keySecret, now }: StepDeps,
): Promise<readonly RowChange[]> {
  const key = rsaKeyOf(privateKey)
  const same = tokens.find(({ id }) => id === key.id)
  if (same) return refuseRetired(same.state, 'token')
  const next = keyOf(tokens, 'token', 'next')
  return [
    ...(next ? [await remove(tx, next)] : []), // it has signed nothing
    await addTokenKey(tx, keySecret, key, { state: 'next', source: 'provided' }, now),
  ]
}

function rsaKeyOf(privateKey: string): NewTokenKey {
  if (createPrivateKey(privateKey).asymmetricKeyType !== 'rsa')
    throw new KeyRefused('unusable', 'tokens are signed with RS256: the key must be an RSA key')
  return tokenKeyOf(privateKey)
}

async function addProvidedKey(
  tx: Tx,
  { certified }: AllKeys,
  role: Key['role'],
  { privateKey, certificate, chain }: ProvidedKey,
  deps: StepDeps,
): Promise<readonly RowChange[]> {
  const pem = withNewline(certificate)
  refuseMisfit(role, pem, privateKey)
  const { between, root } = pathOf(pem, chain.map(withNewline), certified)
  const chainText = between.join('')
  const same = certified.find((key) => key.role === role && hasSameKey(key.pem, pem))
  if (same && (same.state === 'retired' || (same.pem === pem && same.chain === chainText)))
    return refuseRetired(same.state, role)

  const changes: RowChange[] = []
  const next = keyOf(certified, role, 'next')
  if (!same && next) changes.push(await remove(tx, next))
  if (root !== undefined && !isTrusted(root, certified))
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

function refuseMisfit(role: Key['role'], pem: string, privateKey: string | undefined): void {
  const certificate = new X509Certificate(pem)
  if (role !== 'server' && !certificate.ca)
    throw new KeyRefused('unusable', `the certificate of a ${role} key must be one of an authority`)
  if (role === 'root' && !isSelfSigned(pem))
    throw new KeyRefused('unusable', 'a root must have signed its own certificate')
  if (privateKey === undefined && role !== 'root')
    throw new KeyRefused('unusable', `a ${role} key needs its private key`)
  if (privateKey !== undefined && !certificate.checkPrivateKey(createPrivateKey(privateKey)))
    throw new KeyRefused('unusable', 'the private key does not fit the certificate')
}

function refuseRetired(state: Key['state'], role: KeyRole): readonly RowChange[] {
  if (state === 'retired')
    throw new KeyRefused('exists', `this ${role} key has been retired: provide a new one`)
  return []
}

const isTrusted = (root: string, certified: readonly Key[]): boolean =>
  certified.some((key) => fingerprintOfPem(key.pem) === fingerprintOfPem(root))

const hasSameKey = (pem: string, other: string): boolean =>
  isSameKey(new X509Certificate(pem).publicKey, new X509Certificate(other).publicKey)

const withNewline = (pem: string): string => `${pem.trim()}\n`
