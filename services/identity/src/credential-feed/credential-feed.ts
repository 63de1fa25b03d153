import { setTimeout as delay } from 'node:timers/promises'
import { coalesced, openOutage, runPeriodically } from '@overlay/process/async'
import type { Position } from '@overlay/rpc'
import type { Bus, ChangeLog } from '@overlay/store/change-log'
import { GATHER_CREDENTIALS_MS, SKIPPED_SWEEPS, SWEEP_EVERY_MS, SWEEP_SOON_MS } from '../limits.js'
import { logCredentialChanges } from '../store/credential-changes.js'
import { openReceivers } from './receivers.js'

/** Passes the credentials of API sessions to the replicas of sessions, which push them to routers. */
export interface CredentialFeed extends AsyncDisposable {
  /**
   * Returns when routers have been sent the credentials that are committed, after a second at the latest, and at once
   * while no router is connected. Never throws: routers get them in any case.
   */
  deliver(): Promise<void>
}

export function openCredentialFeed(
  changeLog: ChangeLog,
  bus: Pick<Bus, 'subscribe' | 'connected'>,
): CredentialFeed {
  const { db, log } = changeLog
  const receivers = openReceivers(bus)

  /** Returns a position with all that were committed before the call. */
  async function flush(): Promise<Position | undefined> {
    await delay(GATHER_CREDENTIALS_MS)
    let position: Position | undefined
    for (;;) {
      const logged = await logCredentialChanges(db)
      if (!logged) return position
      changeLog.appended(logged.position, logged.changes)
      position = logged.position
      if (!logged.hasMore) return position
    }
  }
  const sharedFlush = coalesced(flush)

  const outage = openOutage((err) => log.warn({ err }, 'credentials of API sessions not passed on'), {
    lastsMs: 0,
  })
  const sweep = (): Promise<void> => sharedFlush().then(outage.works, outage.failed)
  let skipped = 0
  const sweeping = runPeriodically(SWEEP_EVERY_MS, async () => {
    if (bus.connected() && receivers.none() && skipped++ < SKIPPED_SWEEPS) return
    skipped = 0
    await sweep()
  })
  let last: Promise<void> | undefined
  let soon: NodeJS.Timeout | undefined
  function sweepSoon(): void {
    soon ??= setTimeout(() => {
      soon = undefined
      last = sweep()
    }, SWEEP_SOON_MS)
  }
  const moves = changeLog.onMove(sweepSoon)
  return {
    async deliver() {
      if (!receivers.any()) return sweepSoon()
      try {
        // without a position another replica has moved them
        await receivers.wait((await sharedFlush()) ?? (await changeLog.head()))
      } catch (err) {
        log.debug({ err }, 'routers may get credentials of an API session after its login has been answered')
      }
    },
    async [Symbol.asyncDispose]() {
      moves[Symbol.dispose]()
      clearTimeout(soon)
      await last
      await sweeping[Symbol.asyncDispose]()
      outage[Symbol.dispose]()
      receivers[Symbol.dispose]()
    },
  }
}
