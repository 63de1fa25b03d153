import { createHash, generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'
import { runPeriodically } from '@overlay/platform/async'
import type { ChangeLog, RowChange } from '@overlay/platform/change-log'
import type { Tx } from '@overlay/platform/postgres'
import { type Context, ownContext } from '@overlay/rpc'
import type { Logger } from 'pino'
import { planTokenKeys, type TokenKeyRules } from '../domain/token-key-plan.js'
import { lockKeys } from '../store/keys.js'
import {
  activateTokenKey,
  addTokenKey,
  type NewTokenKey,
  removeTokenKey,
  retireTokenKey,
  type TokenKey,
  tokenKeys,
} from '../store/token-keys.js'

const CHECK_MS = 3_600_000

export interface TokenKeyOptions {
  readonly changeLog: ChangeLog
  readonly keySecret: string
  readonly tokenKeyRules: TokenKeyRules
  readonly log: Logger
}

/**
 * Creates missing keys of tokens and replaces old ones, now and every hour, in every replica. The first that finds a
 * step due takes it. Fails if the first check does.
 */
export async function startTokenKeys(options: TokenKeyOptions & { now(): Date }): Promise<AsyncDisposable> {
  const { log, now } = options
  await checkTokenKeys(options, ownContext(new AbortController().signal), now())
  return runPeriodically(CHECK_MS, async (signal) => {
    try {
      await checkTokenKeys(options, ownContext(signal), now())
    } catch (err) {
      log.error({ err }, 'keys of tokens not checked') // the next check is in time: a late rotation does no harm
    }
  })
}

/** Takes the steps that are due. Processes may call it at the same time. */
export async function checkTokenKeys(
  { changeLog, keySecret, tokenKeyRules, log }: TokenKeyOptions,
  context: Context,
  now: Date,
): Promise<void> {
  const { result: changes } = await changeLog.write(context, async (tx) => {
    await lockKeys(tx)
    const changes = await takeSteps(tx, keySecret, tokenKeyRules, now)
    return { result: changes, changes }
  })
  for (const { id, after } of changes)
    log.info({ keyId: id, ...(after ?? { state: 'removed' }) }, 'key of tokens changed')
}

async function takeSteps(
  tx: Tx,
  secret: string,
  rules: TokenKeyRules,
  now: Date,
): Promise<readonly RowChange[]> {
  const keys = await tokenKeys(tx)
  const { remove, retire, activate, add } = planTokenKeys(keys, rules, now)
  const named = (ids: readonly string[]): readonly TokenKey[] => keys.filter(({ id }) => ids.includes(id))
  const changes: RowChange[] = []
  for (const key of named(remove)) changes.push(await removeTokenKey(tx, key))
  for (const key of named(retire)) changes.push(await retireTokenKey(tx, key, now))
  for (const key of named(activate)) changes.push(await activateTokenKey(tx, key, now))
  for (const state of add) changes.push(await addTokenKey(tx, secret, await newTokenKey(), state, now))
  return changes
}

const newKeyPair = promisify(generateKeyPair)

// wire: RSA, because the Go SDK 0.23 refuses id tokens with other signatures than RS256
async function newTokenKey(): Promise<NewTokenKey> {
  const { privateKey, publicKey } = await newKeyPair('rsa', { modulusLength: 2048 })
  const { e, kty, n } = publicKey.export({ format: 'jwk' })
  const publicJwk = { e, kty, n } // in the order of RFC 7638
  return {
    id: createHash('sha256').update(JSON.stringify(publicJwk)).digest('base64url'),
    publicJwk,
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  }
}
