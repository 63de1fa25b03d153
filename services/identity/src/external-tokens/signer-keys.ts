import { createPublicKey, type KeyObject, X509Certificate } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { ChangeLog } from '@overlay/platform/change-log'
import { metrics } from '@overlay/platform/process'
import { TokenError } from '../domain/external-token.js'
import { ageOf, isFetchDue, recentlyMissed } from '../domain/key-set-age.js'
import { keysIn, type PublishedKey } from '../domain/published-keys.js'
import {
  beginFetch,
  enabledSigner,
  hasFetchEnded,
  type LockedKeySet,
  lockKeySet,
  type Signer,
  storeFailedFetch,
  storeKeys,
} from '../store/signers.js'
import { FETCH_MS, type FetchRules, fetchDocument } from './fetch-keys.js'

/** A signer with the key that its token names. */
export interface SignerKey {
  readonly signer: Signer
  readonly key: KeyObject
  /** The only algorithm that the issuer allows for the key. Undefined: any of its type. */
  readonly alg: string | undefined
}

/** The keys of signers. */
export interface SignerKeys extends AsyncDisposable {
  /**
   * Waits for a fetch if the key is not known, or the known ones are old. Throws TokenError.
   * @param onSigner learns the signer, also when its key is not found
   */
  find(issuer: string, kid: string, onSigner: (signer: Signer) => void): Promise<SignerKey>
}

const POLL_MS = 50
const LEASE_MS = FETCH_MS + 2000
const MOST_IMPORTED = 1000

export function openSignerKeys({ db, log }: Pick<ChangeLog, 'db' | 'log'>, rules: FetchRules): SignerKeys {
  const running = new Map<string, Promise<void>>()
  const imported = new Map<string, KeyObject>()
  const stop = new AbortController()

  function importOnce(text: string, read: () => KeyObject): KeyObject {
    const known = imported.get(text)
    if (known) return known
    if (imported.size >= MOST_IMPORTED) imported.clear()
    const key = read()
    imported.set(text, key)
    return key
  }

  const withKey = (signer: Signer, { spki, alg }: PublishedKey): SignerKey => {
    const read = () => createPublicKey({ key: Buffer.from(spki, 'base64'), format: 'der', type: 'spki' })
    return { signer, key: importOnce(spki, read), alg }
  }

  /** Fetches the keys, or waits for the replica that does. Nothing, if no fetch is due. */
  async function refresh(signer: Signer, endpoint: string, missing: string | undefined): Promise<void> {
    const work = await db.transaction(undefined, async (tx) => {
      const state = await lockKeySet(tx, signer.id, endpoint, missing)
      if (!state) return undefined
      if (state.isBusy) return { state, isOurs: false, fetchNumber: state.fetchNumber }
      // another replica may have fetched it since this one looked
      if (!isFetchDue(state, state.isFound ? undefined : missing)) return undefined
      return { state, isOurs: true, fetchNumber: await beginFetch(tx, signer.id, LEASE_MS) }
    })
    if (work?.isOurs) await fetchKeys(signer, endpoint, work.fetchNumber, work.state, missing)
    else if (work)
      while (!stop.signal.aborted && !(await hasFetchEnded(db, signer.id, work.fetchNumber)))
        await delay(POLL_MS)
  }

  async function fetchKeys(
    { id, name }: Signer,
    endpoint: string,
    fetchNumber: number,
    state: LockedKeySet,
    missing: string | undefined,
  ): Promise<void> {
    try {
      const keys = keysIn(await fetchDocument(endpoint, rules))
      const isMissed = missing !== undefined && !Object.hasOwn(keys, missing)
      // as a literal: an assignment would not store a kid such as `__proto__`, which then caused fetches without end
      const missed = { ...recentlyMissed(state), ...(isMissed && { [missing]: state.nowMs }) }
      await storeKeys(db, id, fetchNumber, keys, missed)
      metrics.keyFetches.inc({ result: 'fetched' })
      log.info({ signerId: id, signer: name, kids: Object.keys(keys) }, 'keys of a signer fetched')
    } catch (err) {
      await storeFailedFetch(db, id, fetchNumber)
      metrics.keyFetches.inc({ result: 'failed' })
      log.warn({ err, signerId: id, signer: name, endpoint }, 'keys of a signer not fetched')
    }
  }

  /** All callers of a process share one refresh. */
  function refreshOnce(signer: Signer, endpoint: string, missing: string | undefined): Promise<void> {
    const key = `${signer.id} ${endpoint}`
    const shared = running.get(key)
    if (shared) return shared
    const refreshing = refresh(signer, endpoint, missing).finally(() => running.delete(key))
    running.set(key, refreshing)
    return refreshing
  }

  return {
    async find(issuer, kid, onSigner) {
      const signer = await enabledSigner(db, issuer, kid)
      if (!signer) throw new TokenError('unknown signer', 'no enabled signer has this issuer')
      onSigner(signer)
      const { certPem, certKid, endpoint } = signer
      if (certPem !== null) {
        if (kid !== certKid) throw unknownKey()
        return {
          signer,
          key: importOnce(certPem, () => new X509Certificate(certPem).publicKey),
          alg: undefined,
        }
      }
      if (endpoint === null) throw unknownKey()
      const age = ageOf(signer)
      if (signer.key && age === 'fresh') return withKey(signer, signer.key)
      const refreshing = refreshOnce(signer, endpoint, signer.key ? undefined : kid)
      if (signer.key && age === 'aging') {
        refreshing.catch((err: unknown) =>
          log.warn({ err, signerId: signer.id }, 'keys of a signer not refreshed'),
        )
        return withKey(signer, signer.key)
      }
      await refreshing
      const refreshed = await enabledSigner(db, issuer, kid)
      if (!refreshed || ageOf(refreshed) === 'lost')
        throw new TokenError('keys not available', 'the keys of the signer could not be fetched')
      if (!refreshed.key) throw unknownKey()
      return withKey(refreshed, refreshed.key)
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await Promise.allSettled(running.values())
    },
  }
}

const unknownKey = (): TokenError => new TokenError('unknown key', 'the signer has no key of this name')
