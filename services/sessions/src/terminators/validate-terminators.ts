import {
  ctrlType,
  type Outgoing,
  ValidateTerminatorsV2Request,
  ValidateTerminatorsV2Response,
} from '@overlay/channel'
import { pagesOf, runPeriodically } from '@overlay/process/async'
import { batch, type Database } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import { onMessage } from '../channel/handlers.js'
import type { RouterChannel, RouterMessages } from '../channel/router-channel.js'
import { NO_FEATURES, type RouterFeatures } from '../domain/router-features.js'
import { LIST_BYTES, MAX_WAITING_VALIDATIONS, VALIDATION_DELAY_MS, VALIDATION_PAGE } from '../limits.js'
import type { RouterPresence } from '../routers/router-presence.js'
import {
  type InvalidTerminator,
  nextOfRouters,
  type ToValidate,
  terminatorsToValidate,
} from '../store/router-terminator.js'

export interface ValidationDeps {
  readonly db: Database
  readonly messages: Pick<RouterMessages, 'send'>
  readonly presence: Pick<RouterPresence, 'of'>
  readonly removeInvalid: (invalid: readonly InvalidTerminator[]) => Promise<void>
  readonly log: Logger
  readonly delayMs?: number
}

/** Asks routers which of their terminators they know, and deletes those that they do not know. */
export function openValidation(deps: ValidationDeps) {
  const { db, messages, presence, removeInvalid, log, delayMs = VALIDATION_DELAY_MS } = deps
  const pages = batch<{ routerId: string; after: string }, readonly ToValidate[]>(
    async (requests) => {
      const rows = await nextOfRouters(db, requests, VALIDATION_PAGE)
      return requests.map((_, at) => rows.filter(({ place }) => place === at))
    },
    { limit: 20 },
  )
  let waiting: string[] = []
  let due: string[] = [] // one period old
  const settling = new Map<string, Promise<void>>()

  async function validateNew(): Promise<void> {
    const ids = due
    due = waiting
    waiting = []
    try {
      for (const page of pagesOf(ids, VALIDATION_PAGE))
        for (const [routerId, rows] of byRouter(await terminatorsToValidate(db, page)))
          messages.send(routerId, requestFor(rows, presence.of(routerId)[0]?.features))
    } catch (err) {
      log.warn({ err }, 'new terminators not validated before their routers reconnect')
    }
  }
  const validating = runPeriodically(delayMs, validateNew)

  async function removePages(invalid: readonly InvalidTerminator[]): Promise<void> {
    for (const page of pagesOf(invalid, VALIDATION_PAGE)) await removeInvalid(page)
  }

  return {
    handler: onMessage(
      ctrlType.validateTerminatorsV2Response,
      ValidateTerminatorsV2Response,
      async ({ states }, _message, { routerId }) => {
        const invalid = [...states]
          .filter(([, { valid }]) => !valid)
          .map(([id, { marker }]) => ({ id, routerId, marker: Number(marker) }))
        if (invalid.length === 0) return
        const removing = Promise.all([settling.get(routerId), removePages(invalid)]).then(() => undefined)
        const settled = removing.catch(() => undefined) // its handler reports the failure
        settling.set(routerId, settled)
        try {
          await removing
        } finally {
          if (settling.get(routerId) === settled) settling.delete(routerId)
        }
      },
      { mostBytes: LIST_BYTES, items: ({ states }) => states.size },
    ),

    /** Asks a router about all of its terminators. */
    async validateRouter({ routerId, channel, features }: RouterChannel): Promise<void> {
      for (let after = ''; !channel.closed.aborted; ) {
        const rows = await pages({ routerId, after })
        if (rows.length > 0) channel.send(requestFor(rows, features))
        if (rows.length < VALIDATION_PAGE) return
        await channel.drained()
        after = rows.at(-1)?.id ?? after
      }
    },

    /** Asks about a new terminator, some seconds later: its router must have learned of it by then. */
    validateSoon(terminatorId: string): void {
      if (waiting.length < MAX_WAITING_VALIDATIONS) waiting.push(terminatorId)
    },

    /** Resolves when invalid terminators that the router has reported are deleted. */
    settled: (routerId: string): Promise<void> | undefined => settling.get(routerId),

    [Symbol.asyncDispose]: () => validating[Symbol.asyncDispose](),
  }
}

function byRouter(rows: readonly ToValidate[]): ReadonlyMap<string, ToValidate[]> {
  const found = new Map<string, ToValidate[]>()
  for (const row of rows) {
    const ofRouter = found.get(row.routerId)
    if (ofRouter) ofRouter.push(row)
    else found.set(row.routerId, [row])
  }
  return found
}

/**
 * `fixInvalid`: the router also forgets what it does not serve any more. `postCreate`: a router of 2.x answers from its own
 * table, and asks its clients itself.
 */
const requestFor = (rows: readonly ToValidate[], features: RouterFeatures = NO_FEATURES): Outgoing => ({
  type: ctrlType.validateTerminatorsV2,
  body: ValidateTerminatorsV2Request.encode({
    terminators: rows.map(({ id, binding, address, marker }) => ({
      id,
      binding,
      address,
      marker: BigInt(marker),
    })),
    fixInvalid: true,
    postCreate: features.isGrouped,
  }).finish(),
})
