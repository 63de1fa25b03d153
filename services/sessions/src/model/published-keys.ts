import { createHash, createPublicKey, type JsonWebKey, X509Certificate } from 'node:crypto'
import {
  ModelAction,
  type ModelEvent,
  ModelKeyFormat,
  ModelKeyUsage,
  type ModelPublicKey,
} from '@overlay/channel'
import { ca } from '@overlay/model'
import { coalesced, openBackoff } from '@overlay/process/async'
import { type Change, type Methods, ownContext, type PkiServiceService, type Position } from '@overlay/rpc'
import { type Memory, openProjection, type Source } from '@overlay/store/change-log'
import { payloadDecoder } from '@overlay/store/kind-store'
import { pemBlocksIn } from '@overlay/x509'
import type { Logger } from 'pino'
import { MODEL_KEYS_MS, MODEL_PAUSES } from '../limits.js'
import { keyEvent } from './encode-model.js'

export interface KeyOwner {
  readonly source: Source
  readonly calls: Pick<Methods<PkiServiceService>, 'getTokenKeys' | 'getTrustBundle'>
}

/** The keys of the data model: those that verify tokens, and the authorities of clients' certificates. */
export interface PublishedKeys extends AsyncDisposable {
  all(): readonly ModelPublicKey[]
  /** The same in all replicas that have the same keys. */
  version(): string
  /** Resolves when they are known. */
  readonly loaded: Promise<void>
}

/** @param changed gets the events that lead from the former keys to the new ones, after they are in use */
export async function openPublishedKeys(
  pki: KeyOwner,
  log: Logger,
  changed: (events: readonly ModelEvent[]) => void,
): Promise<PublishedKeys> {
  const stop = new AbortController()
  const backoff = openBackoff(MODEL_PAUSES)
  const loaded = Promise.withResolvers<void>()
  let thirdParties: ReadonlyMap<string, string> = new Map()
  let keys: ReadonlyMap<string, ModelPublicKey> = new Map()
  let version = ''
  let seen: Position | undefined

  /** Reads them again until it succeeds. */
  const refresh = coalesced(async () => {
    while (!stop.signal.aborted)
      try {
        replace(await read())
        backoff.reset()
        return
      } catch (err) {
        if (stop.signal.aborted) return
        if (backoff.isReset()) log.warn({ err }, 'public keys for routers not read')
        await backoff.pause(stop.signal)
      }
  })

  async function read(): Promise<ModelPublicKey[]> {
    const positions = seen ? { pki: seen } : {}
    const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(MODEL_KEYS_MS)])
    const context = { ...ownContext(signal), positions }
    const [{ jwks, keyIds, sessionKeyIds }, { pems }] = await Promise.all([
      pki.calls.getTokenKeys({}, context),
      pki.calls.getTrustBundle({}, context),
    ])
    const ids = new Set([...keyIds, ...sessionKeyIds])
    return [
      ...tokenKeysIn(jwks, ids),
      ...pems.flatMap(authoritiesIn),
      ...[...thirdParties.values()].flatMap(safely),
    ]
  }
  /** Its owner may have stored what this release does not read. */
  function safely(pem: string): ModelPublicKey[] {
    try {
      return authoritiesIn(pem)
    } catch (err) {
      log.warn({ err }, 'certificate of a third party left out of the data model of routers')
      return []
    }
  }

  function replace(next: readonly ModelPublicKey[]): void {
    const before = keys
    keys = new Map(next.map((key) => [key.kid, key]))
    const digest = createHash('sha256')
    for (const kid of [...keys.keys()].sort()) digest.update(kid).update(keys.get(kid)?.data ?? '')
    version = digest.digest('hex').slice(0, 16)
    const isEqual = (key: ModelPublicKey): boolean => before.get(key.kid)?.data.equals(key.data) === true
    const events = [
      ...next.filter((key) => !isEqual(key)).map((key) => keyEvent(ModelAction.CREATE, key)),
      ...[...before.values()]
        .filter(({ kid }) => !keys.has(kid))
        .map((key) => keyEvent(ModelAction.DELETE, key)),
    ]
    loaded.resolve()
    if (events.length > 0) changed(events)
  }

  const note = (changes: readonly Change[], into: Map<string, string>): void => {
    for (const change of changes) {
      if (change.kind !== ca.kind) continue
      const row = decodeCa(change)
      if (row?.isVerified && row.certPem) into.set(change.id, row.certPem)
      else into.delete(change.id)
    }
  }
  const memory: Memory = {
    name: 'public keys of routers',
    kinds: [ca.kind, 'keys'],
    apply(changes, upto) {
      if (changes.length === 0) return
      const next = new Map(thirdParties)
      note(changes, next)
      thirdParties = next
      seen = upto
      void refresh()
    },
    load() {
      const next = new Map<string, string>()
      return {
        add: (rows) => note(rows, next),
        end(upto) {
          thirdParties = next
          seen = upto
          void refresh()
        },
      }
    },
  }
  const projection = await openProjection(pki.source, memory, { log, loaded: 'background' })
  return {
    all: () => [...keys.values()],
    version: () => version,
    loaded: loaded.promise,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await projection[Symbol.asyncDispose]()
      await refresh()
    },
  }
}

const decodeCa = payloadDecoder(ca)

/** Routers find a key by the id that the head of the token names. */
function tokenKeysIn(jwks: Buffer, ids: ReadonlySet<string>): ModelPublicKey[] {
  const { keys } = JSON.parse(jwks.toString()) as {
    readonly keys: readonly (JsonWebKey & { kid?: string })[]
  }
  return keys.flatMap((jwk) =>
    jwk.kid !== undefined && ids.has(jwk.kid)
      ? {
          kid: jwk.kid,
          data: createPublicKey({ key: jwk, format: 'jwk' }).export({ format: 'der', type: 'spki' }),
          usages: [ModelKeyUsage.TOKENS],
          format: ModelKeyFormat.PUBLIC_KEY,
        }
      : [],
  )
}

/** The prefix keeps their ids apart from those of the keys of tokens. */
const authoritiesIn = (pem: string): ModelPublicKey[] =>
  [...pemBlocksIn(pem)].map(({ text }) => {
    const data = new X509Certificate(text).raw
    return {
      kid: `ca-${createHash('sha1').update(data).digest('hex')}`,
      data,
      usages: [ModelKeyUsage.CLIENT_CERTIFICATES],
      format: ModelKeyFormat.CERTIFICATE,
    }
  })
