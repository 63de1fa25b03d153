import { X509Certificate } from 'node:crypto'
import type { Db } from '@overlay/store/postgres'
import { hostsOf, isIssuedBy, notAfterOf, notBeforeOf, pemBlocksIn } from '@overlay/x509'
import { onOneLine } from '../domain/describe-key.js'
import type { PlannedCertificate } from '../domain/planned-key.js'
import { type Key, readKeys } from '../store/keys.js'
import { type TokenKey, tokenKeys } from '../store/token-keys.js'

export interface CertifiedKey extends Key {
  readonly certificate: PlannedCertificate
}

/** All keys of the network, of both tables. */
export interface AllKeys {
  readonly certified: readonly Key[]
  readonly tokens: readonly TokenKey[]
  readonly planned: readonly (CertifiedKey | TokenKey)[]
}

export async function readAllKeys(db: Db): Promise<AllKeys> {
  const certified = await readKeys(db)
  const tokens = await tokenKeys(db)
  return { certified, tokens, planned: [...plannedKeys(certified), ...tokens] }
}

function plannedKeys(keys: readonly Key[]): readonly CertifiedKey[] {
  const [roots, signings] = [ofRole(keys, 'root'), ofRole(keys, 'signing')]
  return keys.map((key) => ({
    ...key,
    certificate: {
      notBefore: notBeforeOf(key.pem),
      notAfter: notAfterOf(key.pem),
      issuerId: (key.role === 'server' ? issuerIn(signings, key) : undefined)?.id ?? rootOf(key, roots)?.id,
      crossedBy: (key.crossPem === null ? undefined : issuerOf(roots, key.crossPem))?.id,
      hosts: key.role === 'server' ? hostsOf(key.pem) : [],
      canSign: key.sealed !== null,
    },
  }))
}

/**
 * PEM of the certificates between a leaf and every trusted root, the lowest first: clients that trust only
 * an older root need its certificate over the newer one.
 *
 * @param authority signs the leaf
 */
export function intermediatesOf(authority: Key, keys: readonly Key[], now: Date): string {
  return authority.pem + chainAbove(authority, keys, now)
}

/** What a server sends after its own certificate. */
export function serverChainOf(server: Key, keys: readonly Key[], now: Date): string {
  const signing = issuerIn(ofRole(keys, 'signing'), server)
  return signing ? intermediatesOf(signing, keys, now) : chainAbove(server, keys, now)
}

function chainAbove(key: Key, keys: readonly Key[], now: Date): string {
  const roots = ofRole(keys, 'root')
  const root = rootOf(key, roots)
  return [key.chain, ...(root ? crossesOf(root, roots, now) : [])].join('')
}

function crossesOf({ crossPem }: Key, roots: readonly Key[], now: Date): readonly string[] {
  if (crossPem === null || notAfterOf(crossPem) <= now) return []
  const older = issuerOf(roots, crossPem)
  const rest = older ? roots.filter(({ id }) => id !== older.id) : []
  return older ? [crossPem, ...crossesOf(older, rest, now)] : []
}

/** The root that the chain of a key ends at. */
function rootOf(key: Key, roots: readonly Key[]): Key | undefined {
  const top = [...pemBlocksIn(key.chain)].at(-1)?.text ?? key.pem
  const others = roots.filter(({ id }) => id !== key.id)
  return issuerOf(others, top)
}

const ofRole = (keys: readonly Key[], which: Key['role']): readonly Key[] =>
  keys.filter(({ role }) => role === which)

const issuerIn = (signings: readonly Key[], { pem, chain }: Key): Key | undefined =>
  chain === '' ? issuerOf(signings, pem) : undefined

const issuerOf = (authorities: readonly Key[], pem: string): Key | undefined =>
  authorities.find((authority) => isIssuedBy(pem, authority.pem))

export const subjectOf = (pem: string): string => onOneLine(new X509Certificate(pem).subject)
