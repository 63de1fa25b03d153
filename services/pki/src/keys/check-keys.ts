import { splitAddress } from '@overlay/process'
import { runPeriodically } from '@overlay/process/async'
import { type Context, ownContext } from '@overlay/rpc'
import type { ChangeLog } from '@overlay/store/change-log'
import type { Logger } from 'pino'
import type { KeyRules } from '../domain/key-plan.js'
import type { TokenKeyRules } from '../domain/token-key-plan.js'
import { KEY_CHECK_MS } from '../limits.js'
import { lockKeys } from '../store/key-states.js'
import { readAllKeys } from './all-keys.js'
import { keyWarnings } from './key-report.js'
import { takeDueSteps } from './steps.js'

export interface CheckOptions {
  readonly changeLog: ChangeLog
  readonly keySecret: string
  readonly rules: KeyRules
  /** The setting. A network that has none yet gets it. */
  readonly trustDomain?: string | undefined
  readonly log: Logger
}

export interface KeyCheckOptions extends Omit<CheckOptions, 'rules'> {
  readonly tokenKeyRules: TokenKeyRules
  /** Advertised `host:port` of the APIs. */
  readonly address: string
  /** Where routers reach the control channel, as host:port. */
  readonly ctrlAddress: string
  now(): Date
}

/**
 * Creates missing keys and replaces old ones, now and every hour, in every replica. The first that finds a step due
 * takes it. Fails if the first check does.
 */
export async function startKeyChecks(options: KeyCheckOptions): Promise<AsyncDisposable> {
  const { log, now, address, ctrlAddress, tokenKeyRules: tokens } = options
  const rules = { hosts: hostsAt([address, ctrlAddress]), tokens }
  const warn = keyWarnings(log)
  const check = async (signal: AbortSignal): Promise<void> => {
    await checkKeys({ ...options, rules }, ownContext(signal), now())
    warn((await readAllKeys(options.changeLog.db)).planned, tokens, now())
  }
  await check(new AbortController().signal)
  return runPeriodically(KEY_CHECK_MS, async (signal) => {
    try {
      await check(signal)
    } catch (err) {
      log.error({ err }, 'keys not checked') // the next check is in time: replacements begin long before they must
    }
  })
}

/** Takes the steps that are due. Processes may call it at the same time. */
export async function checkKeys(
  { changeLog, keySecret, rules, trustDomain, log }: CheckOptions,
  context: Context,
  now: Date,
): Promise<void> {
  const { result: changes } = await changeLog.write(context, async (tx) => {
    await lockKeys(tx)
    const changes = await takeDueSteps(tx, { keySecret, rules, now, trustDomain })
    return { result: changes, changes }
  })
  for (const { id, payload } of changes)
    log.info({ keyId: id, ...(payload ?? { state: 'removed' }) }, 'key changed')
}

/** Hosts of the addresses that clients and routers connect to. `addresses`: `host:port` each. */
export const advertisedHosts = (...addresses: readonly string[]): readonly string[] => [
  ...new Set(addresses.map((text) => splitAddress(text).host.toLowerCase())),
]

/** Names that the certificate of the servers must have. `addresses`: `host:port` each. */
export const hostsAt = (addresses: readonly string[], more: readonly string[] = []): readonly string[] => [
  ...new Set([...ownHosts, ...advertisedHosts(...addresses), ...more.map((host) => host.toLowerCase())]),
]

const ownHosts = ['localhost', '127.0.0.1', '::1']
