import { createPublicKey, X509Certificate } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { metrics, printable } from '@overlay/process'
import type { ChangeLog } from '@overlay/store/change-log'
import { TokenError, type TokenKey } from '../domain/external-token.js'
import { ageOf, isFetchDue, missesAfter } from '../domain/key-set-age.js'
import { type KeySet, keysIn, keysOf, type PublishedKey, type UnusableKey } from '../domain/published-keys.js'
import { FETCH_LEASE_MS, LOGGED_KID, POLL_FETCH_MS } from '../limits.js'
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
import { type FetchRules, fetchDocument } from './fetch-keys.js'

/** A signer with the keys of the name that its token has. */
export interface SignerKey {
  readonly signer: Signer
  readonly keys: readonly TokenKey[]
}

/** The keys of signers. */
export interface SignerKeys extends AsyncDisposable {
  /**
   * Waits for a fetch if the key is not stored, or the stored ones are old. Throws TokenError.
   * @param onSigner learns the signer, also when its key is not found
   */
  find(issuer: string, kid: string, onSigner: (signer: Signer) => void): Promise<SignerKey>
}

export function openSignerKeys({ db, log }: Pick<ChangeLog, 'db' | 'log'>, rules: FetchRules): SignerKeys {
  const running = new Map<string, Promise<void>>()
  const stop = new AbortController()

  /** Fetches the keys, or waits for the replica that does. Nothing, if no fetch is due. */
  async function refresh(signer: Signer, endpoint: string, missing: string | undefined): Promise<void> {
    const work = await db.transaction(undefined, async (tx) => {
      const state = await lockKeySet(tx, signer.id, endpoint, missing)
      if (!state) return undefined
      if (state.isBusy) return { state, isOurs: false, fetchNumber: state.fetchNumber }
      // another replica may have fetched it since this one looked
      if (!isFetchDue(state, missing !== undefined && !state.isFound)) return undefined
      return { state, isOurs: true, fetchNumber: await beginFetch(tx, signer.id, FETCH_LEASE_MS) }
    })
    if (work?.isOurs) await fetchKeys(signer, endpoint, work.fetchNumber, work.state, missing)
    else if (work)
      while (!stop.signal.aborted && !(await hasFetchEnded(db, signer.id, work.fetchNumber)))
        await delay(POLL_FETCH_MS)
  }

  async function fetchKeys(
    { id, name }: Signer,
    endpoint: string,
    fetchNumber: number,
    state: LockedKeySet,
    missing: string | undefined,
  ): Promise<void> {
    try {
      const { keys, unusable } = keysIn(await fetchDocument(endpoint, rules))
      await storeKeys(db, id, fetchNumber, keys, missesOf(state, missing, keys))
      metrics.keyFetches.inc({ result: 'fetched' })
      const kids = Object.keys(keys)
      const facts = { signerId: id, signer: name, kids, unusable: unusable.map(printed) }
      if (kids.length > 0) log.info(facts, 'keys of a signer fetched')
      else log.warn({ ...facts, endpoint }, 'keys of a signer fetched, none is usable')
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
        return { signer, keys: [{ key: new X509Certificate(certPem).publicKey, alg: undefined }] }
      }
      if (endpoint === null) throw unknownKey()
      const age = ageOf(signer)
      if (signer.key && age === 'fresh') return withKeys(signer, signer.key)
      const refreshing = refreshOnce(signer, endpoint, signer.key ? undefined : kid)
      if (signer.key && age === 'aging') {
        refreshing.catch((err: unknown) =>
          log.warn({ err, signerId: signer.id }, 'keys of a signer not refreshed'),
        )
        return withKeys(signer, signer.key)
      }
      await refreshing
      const refreshed = await enabledSigner(db, issuer, kid)
      if (!refreshed || ageOf(refreshed) === 'lost')
        throw new TokenError('keys not available', 'the keys of the signer could not be fetched')
      if (!refreshed.key) throw unknownKey()
      return withKeys(refreshed, refreshed.key)
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await Promise.allSettled(running.values())
    },
  }
}

const withKeys = (signer: Signer, published: PublishedKey): SignerKey => ({
  signer,
  keys: keysOf(published).map(({ spki, alg }) => ({
    key: createPublicKey({ key: Buffer.from(spki, 'base64'), format: 'der', type: 'spki' }),
    alg,
  })),
})

const missesOf = (state: LockedKeySet, missing: string | undefined, keys: KeySet): number => {
  if (missing === undefined) return state.misses
  return Object.hasOwn(keys, missing) ? 0 : missesAfter(state)
}

const printed = ({ kid, reason }: UnusableKey): UnusableKey => ({ kid: printable(kid, LOGGED_KID), reason })

const unknownKey = (): TokenError => new TokenError('unknown key', 'the signer has no key of this name')
