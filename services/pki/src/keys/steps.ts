import type { RowChange } from '@overlay/store/change-log'
import type { Tx } from '@overlay/store/postgres'
import {
  type CertifiedKey,
  crossSign,
  hostsOf,
  issueCa,
  issueServer,
  openSigner,
  type Signer,
} from '@overlay/x509'
import { dueStep, type KeyRules } from '../domain/key-plan.js'
import { isTokenRole, type KeyRole, keyOf, type Step } from '../domain/planned-key.js'
import { MAX_KEY_STEPS } from '../limits.js'
import { activate, remove, retire } from '../store/key-states.js'
import { addKey, type Key, privateKeyOf, replaceCertificate } from '../store/keys.js'
import { addTokenKey } from '../store/token-keys.js'
import { type AllKeys, readAllKeys } from './all-keys.js'
import { newAuthorityKey, newAuthorityName, newServerKey, newTokenKey } from './new-keys.js'
import { trustDomainFor } from './trust-domain.js'

export interface StepDeps {
  readonly keySecret: string
  readonly rules: KeyRules
  readonly now: Date
  /** Of a network that has none yet. Undefined: a random one. */
  readonly trustDomain?: string | undefined
}

/** Takes the steps that are due. The transaction holds the lock of the keys. */
export async function takeDueSteps(tx: Tx, deps: StepDeps): Promise<readonly RowChange[]> {
  const changes: RowChange[] = []
  for (let steps = 0; steps < MAX_KEY_STEPS; steps++) {
    const keys = await readAllKeys(tx)
    const step = dueStep(keys.planned, deps.rules, deps.now)
    if (!step) return changes
    changes.push(...(await takeStep(tx, keys, step, deps)))
  }
  throw new Error(`the plan of keys does not end after ${MAX_KEY_STEPS} steps`)
}

export async function takeStep(
  tx: Tx,
  keys: AllKeys,
  step: Step,
  deps: StepDeps,
): Promise<readonly RowChange[]> {
  if (step.step === 'add') return [await addGenerated(tx, keys, step.role, step.state, deps)]
  const { certified, tokens } = keys
  const key = [...certified, ...tokens].find(({ id }) => id === step.id)
  if (!key) throw new Error(`there is no key ${step.id}`)
  if (step.step === 'remove') return [await remove(tx, key)]
  if (step.step === 'renew' && 'pem' in key) {
    const { pem } = await certifyServer(certified, privateKeyOf(key, deps.keySecret), deps, key)
    return [await replaceCertificate(tx, key, pem)]
  }
  const former = keys.planned.find(({ role, state }) => role === key.role && state === 'active')
  return [
    ...(former ? [await retire(tx, former, deps.now)] : []), // first: one of each role is active
    await activate(tx, key, deps.now),
  ]
}

async function addGenerated(
  tx: Tx,
  { certified }: AllKeys,
  role: KeyRole,
  state: 'next' | 'active',
  deps: StepDeps,
): Promise<RowChange> {
  const { keySecret, now } = deps
  if (isTokenRole(role))
    return addTokenKey(tx, keySecret, await newTokenKey(role), { role, state, source: 'generated' }, now)
  if (role === 'server') {
    const server = await certifyServer(certified, await newServerKey(), deps)
    return addKey(tx, keySecret, { ...server, role, state }, now)
  }
  const trustDomain = trustDomainFor(certified, deps)
  const issued = await issueCa({
    ...{ privateKey: await newAuthorityKey(), commonName: newAuthorityName(role), trustDomain, now },
    ...(role === 'signing' && { signer: signerOf(issuingRoot(certified, state), keySecret) }),
  })
  const crossPem = role === 'root' ? await crossCertificate(issued.pem, certified, deps) : undefined
  return addKey(tx, keySecret, { ...issued, role, state, crossPem, trustDomain }, now)
}

/** Undefined: the active root cannot certify another one. */
export async function crossCertificate(
  pem: string,
  certified: readonly Key[],
  { keySecret, now }: Pick<StepDeps, 'keySecret' | 'now'>,
): Promise<string | undefined> {
  const active = keyOf(certified, 'root', 'active')
  return active && active.sealed !== null ? crossSign(signerOf(active, keySecret), pem, now) : undefined
}

/** A next signing authority is below the next root. */
function issuingRoot(certified: readonly Key[], state: 'next' | 'active'): Key | undefined {
  const next = state === 'next' ? keyOf(certified, 'root', 'next') : undefined
  return next && next.sealed !== null ? next : keyOf(certified, 'root', 'active')
}

/** Names of earlier certificates stay: tokens name them. */
async function certifyServer(
  certified: readonly Key[],
  privateKey: string,
  { keySecret, rules, now }: StepDeps,
  former = keyOf(certified, 'server', 'active'),
): Promise<CertifiedKey> {
  const hosts = [...new Set([...(rules.hosts ?? []), ...(former ? hostsOf(former.pem) : [])])]
  const signer = signerOf(keyOf(certified, 'signing', 'active'), keySecret)
  return issueServer(signer, { privateKey, hosts, now })
}

function signerOf(authority: Key | undefined, keySecret: string): Signer {
  if (!authority) throw new Error('there is no authority that could sign')
  return openSigner({ pem: authority.pem, privateKey: privateKeyOf(authority, keySecret) })
}
