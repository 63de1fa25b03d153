import { reconnect, withWatchdog } from '@overlay/process/async'
import { type Methods, ownContext, type SessionsServiceService } from '@overlay/rpc'
import type { FollowLog } from '@overlay/store/change-log'
import { type EventSource, openSharedSource } from './shared-source.js'

/** The service sends a message each second. */
const SILENCE_MS = 5000
const PAUSES = { firstMs: 100, longestMs: 2000 }

/** The events of the network. */
export const openEventSource = (
  sessions: Pick<Methods<typeof SessionsServiceService>, 'watchEvents'>,
  log: FollowLog,
): EventSource =>
  openSharedSource(async ({ emit, opened, closed }, signal) => {
    const open = (own: AbortSignal) => sessions.watchEvents({}, ownContext(own))
    await reconnect({
      signal,
      ...PAUSES,
      async connect({ works }) {
        try {
          for await (const { events } of withWatchdog(SILENCE_MS, open, signal)) {
            works()
            opened()
            for (const event of events) emit(event)
          }
          throw new Error('the owner ended the stream')
        } finally {
          closed()
        }
      },
      onOutage: (err) => log.warn({ err }, 'stream of events lost, trying again'),
    })
  })
