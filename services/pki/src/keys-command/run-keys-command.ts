import { type Context, ownContext, system } from '@overlay/rpc'
import { noBus, openChangeLog } from '@overlay/store/change-log'
import { openDatabase } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import type { TokenKeyRules } from '../domain/token-key-plan.js'
import { advertisedHosts } from '../keys/check-keys.js'
import {
  activateKey,
  type KeyChange,
  type KeyDeps,
  KeyRefused,
  type KeyView,
  listKeys,
  prepareKey,
  retireKey,
} from '../keys/operations.js'
import { OPERATOR_PUBLISHED_MS } from '../limits.js'
import { readProvidedKey } from '../provided-keys/read-provided-key.js'
import { hintsOf, keysTable, nameOf, shortId } from './keys-text.js'
import type { KeysRequest } from './read-arguments.js'

export { readKeysArguments } from './read-arguments.js'

/** @param command the command line up to the arguments */
export const keysUsage = (command: string): string => `${command} [COMMAND]

Without a command: the keys of the network, their states, and what depends on them. With --json for scripts.

  prepare ROLE              adds the next key and publishes it: root, signing, server, token or session
    --from PATH             your own key instead of a generated one: a directory with tls.crt, tls.key and ca.crt, or
                            with keystore.p12, or a file in PEM or PKCS#12
    --passphrase-file FILE  the passphrase of that key
  activate ROLE [--force]   makes the next key the active one, at least a minute after it was prepared
  retire ID [--force]       withdraws a next key, or ends a retired one; the first characters of an ID are enough

--force does it although something that is valid depends on it. While the product runs, it follows within seconds.`

export interface KeysCommandOptions {
  readonly request: KeysRequest
  /** The command line up to the arguments, for texts that name the next step. */
  readonly command: string
  /** With the role of pki. */
  readonly databaseUrl: string
  readonly keySecret: string
  readonly tokenKeyRules: TokenKeyRules
  /** `host:port` of the APIs and of the control channel, which the certificate of the servers must name. */
  readonly addresses: readonly string[]
  /** The author in the audit. */
  readonly operator: string
  readonly print: (line: string) => void
  readonly log: Logger
}

export async function runKeysCommand(options: KeysCommandOptions): Promise<void> {
  const { databaseUrl, keySecret, tokenKeyRules, operator, print, log } = options
  await using db = openDatabase(databaseUrl, 'pki', { max: 2 })
  await using changeLog = await openChangeLog(db, noBus, log)
  const deps = { changeLog, keySecret, tokenKeyRules, context: contextOf(operator) }
  try {
    for await (const line of answer(deps, options)) print(line)
  } catch (err) {
    if (!(err instanceof KeyRefused) || !['not-published', 'outstanding'].includes(err.reason)) throw err
    throw new Error(`${err.message} (--force does it nevertheless)`)
  }
}

async function* answer(
  deps: KeyDeps,
  { request, command, addresses }: KeysCommandOptions,
): AsyncIterable<string> {
  switch (request.action) {
    case 'help':
      yield keysUsage(command)
      return
    case 'list': {
      const keys = await listKeys(deps)
      if (request.isJson) yield JSON.stringify(keys, null, 2)
      else yield* [...keysTable(keys, new Date()), ...hintsOf(keys, new Date(), command)]
      return
    }
    case 'prepare':
      yield* await prepare(deps, request, { command, addresses })
      return
    case 'activate':
      yield* describeActivation(await activateKey(deps, request.role, { force: request.force }))
      return
    case 'retire': {
      const key = keyBy(await listKeys(deps), request.id)
      yield* describeRemoval(await retireKey(deps, key.id, { force: request.force }))
    }
  }
}

async function prepare(
  deps: KeyDeps,
  { role, from, passphraseFile }: Extract<KeysRequest, { action: 'prepare' }>,
  { command, addresses }: Pick<KeysCommandOptions, 'command' | 'addresses'>,
): Promise<readonly string[]> {
  const names = { path: '--from', passphraseFile: '--passphrase-file' }
  const source = from === undefined ? undefined : { path: from, passphraseFile, names }
  const checks = { hosts: advertisedHosts(...addresses), now: new Date() }
  const provided = source && (await readProvidedKey(role, source, checks))
  const before = await listKeys(deps)
  const key = await prepareKey(deps, role, provided)
  const after = await listKeys(deps)
  const was = before.find(({ id }) => id === key.id)
  const others = after.filter(({ id }) => id !== key.id && !before.some((one) => one.id === id))
  const isRenewed = was !== undefined && was.fingerprint !== key.fingerprint
  return [
    ...(provided?.warnings ?? []).map((warning) => `warning: ${warning}`),
    isRenewed
      ? `replaced the certificate of the ${key.state} ${nameOf(key)}`
      : was
        ? `nothing changed: the ${key.state} ${nameOf(key)} is there already`
        : `prepared the next ${nameOf(key)}`,
    ...others.map((other) => `also added the ${nameOf(other)}`),
    ...(key.state === 'next' ? nextStep(key, after, command) : []),
  ]
}

function nextStep(key: KeyView, keys: readonly KeyView[], command: string): readonly string[] {
  const time = new Date(key.createdAt.getTime() + OPERATOR_PUBLISHED_MS).toISOString()
  const { outstanding } = keys.find(({ role, state }) => role === 'server' && state === 'active') ?? {}
  return [
    `it is published, and not used yet; next, after ${time}: ${command} activate ${key.role}`,
    ...(key.role === 'server' && outstanding?.count
      ? [`clients will not be able to verify ${tokensText(outstanding.count)} then`]
      : []),
  ]
}

const tokensText = (count: number): string =>
  count === 1
    ? 'the enrollment token that is outstanding'
    : `the ${count} enrollment tokens that are outstanding`

function* describeActivation({
  activated,
  retired,
  removed,
  unverifiableTokens,
}: KeyChange): Iterable<string> {
  for (const key of activated) yield `the ${nameOf(key)} is active now`
  for (const key of retired) {
    const until = key.outstanding?.until.toISOString()
    yield `retired the ${nameOf(key)}${until === undefined ? '' : `; what it has signed stays valid, until ${until} at the latest`}`
  }
  for (const key of removed) yield `removed the ${nameOf(key)}`
  if (unverifiableTokens > 0)
    yield `clients can no longer verify ${tokensText(unverifiableTokens)}: read the enrollments again, their tokens are signed with the new key, and give these to the clients`
}

function* describeRemoval({ removed }: KeyChange): Iterable<string> {
  for (const key of removed)
    yield key.state === 'next'
      ? `withdrew the next ${nameOf(key)}`
      : `removed the retired ${nameOf(key)}: ${
          key.role === 'signing'
            ? 'what it has signed is still accepted from clients that send its certificate, which leads to the root; if it has leaked, replace the root'
            : 'what it has signed is not accepted any more'
        }`
}

function keyBy(keys: readonly KeyView[], text: string): KeyView {
  const found = keys.filter(({ id }) => id === text || id.startsWith(text))
  const [key] = found
  if (!key) throw new Error(`there is no key ${text}`)
  if (found.length > 1)
    throw new Error(`several keys begin with ${text}: ${found.map(({ id }) => shortId(id)).join(', ')}`)
  return key
}

/** The audit shows the user of this machine in place of an API session. */
const contextOf = (operator: string): Context => ({
  ...ownContext(new AbortController().signal),
  caller: { ...system, identityName: operator },
  requestId: 'keys',
})
