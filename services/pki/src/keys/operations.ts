import type { Context } from '@overlay/rpc'
import type { ChangeLog, RowChange } from '@overlay/store/change-log'
import type { Tx } from '@overlay/store/postgres'
import { isPublished, type KeyRole, type KeyState, keyOf, type PlannedKey } from '../domain/planned-key.js'
import type { TokenKeyRules } from '../domain/token-key-plan.js'
import { OPERATOR_PUBLISHED_MS } from '../limits.js'
import { countEnrollments } from '../store/enrollments.js'
import { lockKeys, remove } from '../store/key-states.js'
import { addProvided, type ProvidedKey, trustDomainFrom } from './add-provided-key.js'
import { type AllKeys, readAllKeys } from './all-keys.js'
import { KeyRefused } from './key-refused.js'
import { type KeyView, keyViews } from './key-view.js'
import { type StepDeps, takeDueSteps, takeStep } from './steps.js'
import { trustDomainIn } from './trust-domain.js'

export type { KeyRole, KeyState } from '../domain/planned-key.js'
export type { ProvidedKey } from './add-provided-key.js'
export { KeyRefused } from './key-refused.js'
export type { KeyView, Outstanding } from './key-view.js'

/**
 * What the operations work with. They are safe while the product runs, whose replicas follow the change log, and while
 * it is stopped.
 */
export interface KeyDeps {
  /** Of pki. */
  readonly changeLog: ChangeLog
  readonly keySecret: string
  readonly tokenKeyRules: TokenKeyRules
  /** Its caller is the author in the audit. */
  readonly context: Context
  /** The setting. A network that has none yet gets it. */
  readonly trustDomain?: string | undefined
  now?(): Date
}

/** What has changed. */
export interface KeyChange {
  readonly activated: readonly KeyView[]
  readonly retired: readonly KeyView[]
  /** As they were. */
  readonly removed: readonly KeyView[]
  /** Enrollment tokens that clients have and can no longer verify. They work when they are read again. */
  readonly unverifiableTokens: number
}

export async function listKeys(deps: KeyDeps): Promise<readonly KeyView[]> {
  const { changeLog, tokenKeyRules: tokens, now } = withTime(deps)
  const enrollments = await countEnrollments(changeLog.db, now)
  return keyViews(await readAllKeys(changeLog.db), { tokens, now, enrollments })
}

/**
 * Adds the next key of a role, and publishes it: a generated one, or the operator's. A next root brings a next signing
 * authority below it, and a provided authority its root. Repetitions return the key that is next already. The
 * operator's key takes the place of another next one, which has signed nothing; if it is the active key, its certificate
 * is replaced.
 */
export async function prepareKey(deps: KeyDeps, role: KeyRole, material?: ProvidedKey): Promise<KeyView> {
  const { changed, after } = await change(deps, async (tx, keys, step) => {
    if (material) return addProvided(tx, keys, role, material, step)
    const next = keyOf(keys.planned, role, 'next')
    if (next?.source === 'provided')
      throw new KeyRefused('exists', `the next ${role} key is provided by you: retire it first`)
    return next ? [] : takeStep(tx, keys, { step: 'add', role, state: 'next' }, step)
  })
  const isChanged = ({ id }: KeyView): boolean => changed.some((row) => row.id === id && row.after)
  const ofRole = after.filter((key) => key.role === role)
  const key =
    ofRole.find((key) => key.state === 'active' && isChanged(key)) ??
    keyOf(ofRole, role, 'next') ??
    keyOf(ofRole, role, 'active') // the provided certificate is in use already
  if (!key) throw new Error(`no ${role} key was prepared`)
  return key
}

/**
 * Adds the operator's keys in one transaction, in their order, so that none is generated in the place of another. Those
 * that are refused are left out.
 */
export async function prepareProvidedKeys(
  deps: KeyDeps,
  provided: readonly { readonly role: KeyRole; readonly material: ProvidedKey }[],
  refused: (at: number, reason: KeyRefused) => void,
): Promise<void> {
  const { id, digest } = trustDomainFrom(provided)
  const { trustDomain = id ?? digest } = deps
  await change({ ...deps, trustDomain }, async (tx, { certified }, step) => {
    if (id !== undefined && id !== trustDomain && trustDomainIn(certified) === undefined)
      throw new Error(
        `OVERLAY_TRUST_DOMAIN is ${trustDomain}, but certificates that you provide name ${id}: leave the setting out, or provide other certificates`,
      )
    const changes: RowChange[] = []
    for (const [at, { role, material }] of provided.entries())
      try {
        changes.push(...(await addProvided(tx, await readAllKeys(tx), role, material, step)))
      } catch (err) {
        if (!(err instanceof KeyRefused)) throw err
        refused(at, err)
      }
    return changes
  })
}

/**
 * Makes the next key of a role the active one, and retires that. A root and the signing authority below it change
 * together, in one transaction; certificates of both are trusted before and afterwards.
 */
export async function activateKey(
  deps: KeyDeps,
  role: KeyRole,
  { force = false }: { readonly force?: boolean } = {},
): Promise<KeyChange> {
  const { before, after, enrollments } = await change(deps, async (tx, { planned }, step) => {
    const together = activatedWith(planned, role)
    const fresh = together.find((key) => !isPublished(key, OPERATOR_PUBLISHED_MS, step.now))
    if (fresh && !force)
      throw new KeyRefused(
        'not-published',
        `the next ${fresh.role} key is not known everywhere yet: wait until a minute after ${fresh.createdAt.toISOString()}`,
      )
    const changes: RowChange[] = []
    for (const { id } of together)
      changes.push(...(await takeStep(tx, await readAllKeys(tx), { step: 'activate', id }, step)))
    return changes
  })
  return changeBetween(before, after, role === 'server' ? enrollments : 0)
}

/**
 * Withdraws a next key, or ends a retired one. Refuses while something that depends on it is valid, unless forced:
 * what it has issued is invalid afterwards.
 */
export async function retireKey(
  deps: KeyDeps,
  id: string,
  { force = false }: { readonly force?: boolean } = {},
): Promise<KeyChange> {
  const { before, after } = await change(deps, async (tx, keys, _step, views) => {
    const key = keys.planned.find((one) => one.id === id)
    if (!key) throw new KeyRefused('unknown', `there is no key ${id}`)
    if (key.state === 'active')
      throw new KeyRefused('active', `the ${key.role} key is in use: activate another one first`)
    const { outstanding } = views.find((view) => view.id === id) ?? {}
    if (outstanding && !force)
      throw new KeyRefused(
        'outstanding',
        `${outstanding.what} that depend on the ${key.role} key are valid until ${outstanding.until.toISOString()} at the latest`,
      )
    const changes: RowChange[] = []
    for (const one of [...belowOf(key, keys.planned), key]) changes.push(await remove(tx, one))
    return changes
  })
  return changeBetween(before, after, 0)
}

/** The keys that change with the next one of a role, in their order. */
function activatedWith(keys: readonly PlannedKey[], role: KeyRole): readonly PlannedKey[] {
  const next = keyOf(keys, role, 'next')
  if (!next) throw new KeyRefused('none', `there is no next ${role} key: prepare one`)
  const root = keyOf(keys, 'root', 'next')
  const signing = keyOf(keys, 'signing', 'next')
  const isBelow = root !== undefined && signing?.certificate?.issuerId === root.id
  if (role === 'root' && !isBelow)
    throw new KeyRefused('none', 'there is no next signing key below the next root: prepare one')
  return isBelow && signing && (role === 'root' || role === 'signing') ? [root, signing] : [next]
}

/** Other authorities are of no use without it. */
const belowOf = (key: PlannedKey, keys: readonly PlannedKey[]): readonly PlannedKey[] =>
  keys.filter(
    ({ role, state, certificate }) =>
      role === 'signing' && state !== 'active' && certificate?.issuerId === key.id,
  )

/** Changes keys under their lock, then takes the steps that are due. `work` gets the keys as they were. */
async function change(
  deps: KeyDeps,
  work: (tx: Tx, keys: AllKeys, step: StepDeps, views: readonly KeyView[]) => Promise<readonly RowChange[]>,
) {
  const { changeLog, context, keySecret, tokenKeyRules: tokens, trustDomain, now } = withTime(deps)
  const { result } = await changeLog.write(context, async (tx) => {
    await lockKeys(tx)
    const step: StepDeps = { keySecret, rules: { hosts: undefined, tokens }, now, trustDomain }
    const keys = await readAllKeys(tx)
    const view = { tokens, now, enrollments: await countEnrollments(tx, now) } // changes of keys end none
    const before = keyViews(keys, view)
    const changed = await work(tx, keys, step, before)
    const due = await takeDueSteps(tx, step)
    const after = keyViews(await readAllKeys(tx), view)
    const enrollments = view.enrollments.count
    return { result: { before, after, changed, enrollments }, changes: [...changed, ...due] }
  })
  return result
}

function changeBetween(
  before: readonly KeyView[],
  after: readonly KeyView[],
  unverifiableTokens: number,
): KeyChange {
  const was = (id: string): KeyState | undefined => before.find((key) => key.id === id)?.state
  const became = (state: KeyState) => after.filter((key) => key.state === state && was(key.id) !== state)
  return {
    activated: became('active'),
    retired: became('retired'),
    removed: before.filter(({ id }) => !after.some((key) => key.id === id)),
    unverifiableTokens,
  }
}

const withTime = (deps: KeyDeps): Omit<KeyDeps, 'now'> & { readonly now: Date } => ({
  ...deps,
  now: deps.now?.() ?? new Date(),
})
