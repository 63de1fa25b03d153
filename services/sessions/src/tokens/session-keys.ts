import { createPrivateKey, type KeyObject } from 'node:crypto'
import { coalesced, runPeriodically } from '@overlay/process/async'
import { openTokenKeys } from '@overlay/process/tokens'
import { type Methods, ownContext, type PkiServiceService, type Positions } from '@overlay/rpc'
import { type Source, watchKinds } from '@overlay/store/change-log'
import type { Logger } from 'pino'
import { READ_SESSION_KEY_MS, SESSION_KEY_POLL_MS } from '../limits.js'

/** The key that signs tokens of sessions now. */
export interface SessionKey {
  readonly id: string
  readonly key: KeyObject
  /** The longest life of a token. */
  readonly tokenMs: number
  readonly issuer: string
}

export interface SessionKeys extends AsyncDisposable {
  /** While pki does not answer, the last one. Undefined: pki has not answered yet. */
  signing(): SessionKey | Promise<SessionKey | undefined>
  /** A published key. Fails if pki has not answered yet. */
  find(keyId: string): KeyObject | undefined | Promise<KeyObject | undefined>
  /** Called when tokens of a key are no longer valid. */
  onRemoved(listener: () => void): void
  /** The keys may have changed. @param positions the changes that the answers of pki must contain */
  reload(positions: Positions): Promise<unknown>
}

export interface SessionKeysOptions {
  readonly pki: Pick<Methods<PkiServiceService>, 'getSessionKey' | 'getTokenKeys'>
  /** Of pki, whose changes of keys are followed. Undefined: they are polled. */
  readonly source?: Source | undefined
  readonly log: Logger
}

/** Follows the keys of tokens of sessions, which pki creates and replaces. Returns before it has them. */
export async function openSessionKeys({ pki, source, log }: SessionKeysOptions): Promise<SessionKeys> {
  const context = () => ownContext(AbortSignal.timeout(READ_SESSION_KEY_MS))
  const listeners: (() => void)[] = []
  let current: SessionKey | undefined
  let seen: Positions = {}
  let isLogged = false

  const published = openTokenKeys({
    pki: {
      async getTokenKeys(request, reading) {
        const answer = await pki.getTokenKeys(request, reading)
        return { ...answer, keyIds: answer.sessionKeyIds }
      },
    },
    context,
    log,
    maxAgeMs: SESSION_KEY_POLL_MS,
    onRemoved: () => {
      for (const listener of listeners) listener()
    },
  })
  const load = coalesced(async (): Promise<SessionKey | undefined> => {
    try {
      const { keyId, keyPem, tokenMs, issuer } = await pki.getSessionKey(
        {},
        { ...context(), positions: seen },
      )
      if (current?.id !== keyId) current = { id: keyId, key: createPrivateKey(keyPem), tokenMs, issuer }
      isLogged = false
    } catch (err) {
      if (!isLogged) log.warn({ err }, 'key of session tokens not read') // each create may try again
      isLogged = true
    }
    return current
  })
  function reload(positions: Positions): Promise<unknown> {
    seen = positions
    published.reload(positions)
    return load()
  }
  void load()
  const polling = runPeriodically(SESSION_KEY_POLL_MS, load)
  const following =
    source &&
    (await watchKinds(source, ['keys'], (position) => void reload({ [source.schema]: position }), {
      log,
      loaded: 'background',
    }))
  return {
    signing: () => current ?? load(),
    find: published.find,
    reload,
    onRemoved: (listener) => void listeners.push(listener),
    async [Symbol.asyncDispose]() {
      await polling[Symbol.asyncDispose]()
      await following?.[Symbol.asyncDispose]()
    },
  }
}
