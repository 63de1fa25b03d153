import {
  ctrlType,
  InvalidTerminatorReason,
  type RouterTerminatorState,
  TerminatorValidity,
  ValidatedTerminator,
  ValidateTerminatorsV2Request,
  ValidateTerminatorsV2Response,
} from '@overlay/channel'
import type { ChangeLog } from '@overlay/store/change-log'
import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { decodeLimited } from '../channel/handlers.js'
import { showable } from '../domain/router-text.js'
import { VALIDATE_ROUTER_MS } from '../limits.js'
import { openInvalidRemover } from '../terminators/remove-terminators.js'
import type { InspectDeps } from './inspect-router.js'

export interface TerminatorCheckDeps extends InspectDeps {
  readonly changeLog: Pick<ChangeLog, 'db' | 'write'>
}

interface Row {
  readonly id: string
  readonly serviceId: string
  readonly serviceName: string
  readonly routerId: string
  readonly routerName: string
  readonly binding: string
  readonly address: string
  readonly hostId: string
  readonly createdAt: Date
  readonly marker: number
}

/** Asks their routers about these terminators. Returns a result for each, also for those that are deleted meanwhile. */
export async function validateTerminators(
  deps: TerminatorCheckDeps,
  ids: readonly string[],
  fix: boolean,
): Promise<Promise<Uint8Array>[]> {
  const rows = new Map((await rowsOf(deps.changeLog.db, ids)).map((row) => [row.id, row]))
  const byRouter = Map.groupBy(rows.values(), ({ routerId }) => routerId)
  const answers = new Map(
    [...byRouter].map(([routerId, some]) => [routerId, statesOf(deps, routerId, some, fix)]),
  )
  return ids.map(async (id) => {
    const row = rows.get(id)
    const states = await answers.get(row?.routerId ?? '')
    return encode(id, row, typeof states === 'string' ? states : states?.get(id), fix)
  })
}

/** The answer of a router, or why there is none. */
async function statesOf(
  { presence, messages, changeLog }: TerminatorCheckDeps,
  routerId: string,
  rows: readonly Row[],
  fixInvalid: boolean,
): Promise<ReadonlyMap<string, RouterTerminatorState> | string> {
  if (!presence.isOnline(routerId)) return 'router off-line'
  const terminators = rows.map(({ id, binding, address, marker }) => ({
    ...{ id, binding, address, marker: BigInt(marker) },
  }))
  const body = ValidateTerminatorsV2Request.encode({ terminators, fixInvalid, postCreate: false }).finish()
  const message = { type: ctrlType.validateTerminatorsV2, body }
  let states: ReadonlyMap<string, RouterTerminatorState>
  try {
    const answer = await messages.request(routerId, message, VALIDATE_ROUTER_MS)
    states = decodeLimited(ValidateTerminatorsV2Response, answer.body).states
  } catch (err) {
    // of one router: the terminators of others are validated all the same
    return err instanceof Error ? err.message : String(err)
  }
  const invalid = rows.filter(({ id }) => states.get(id)?.valid === false)
  if (fixInvalid && invalid.length > 0) await openInvalidRemover({ changeLog })(invalid)
  return states
}

const validities: Readonly<Partial<Record<InvalidTerminatorReason, TerminatorValidity>>> = {
  [InvalidTerminatorReason.UNKNOWN_BINDING]: TerminatorValidity.UNKNOWN_BINDING,
  [InvalidTerminatorReason.UNKNOWN_TERMINATOR]: TerminatorValidity.UNKNOWN_TERMINATOR,
  [InvalidTerminatorReason.BAD_STATE]: TerminatorValidity.BAD_STATE,
}

function encode(
  terminatorId: string,
  row: Row | undefined,
  state: RouterTerminatorState | string | undefined,
  fix: boolean,
): Uint8Array {
  const isInvalid = typeof state === 'object' && !state.valid
  const missing = row ? 'the router has not decided' : 'deleted meanwhile'
  return ValidatedTerminator.encode({
    terminatorId,
    ...{ serviceId: row?.serviceId ?? '', serviceName: row?.serviceName ?? '' },
    ...{ routerId: row?.routerId ?? '', routerName: row?.routerName ?? '' },
    ...{ binding: row?.binding ?? '', address: row?.address ?? '', hostId: row?.hostId ?? '' },
    createDate: row?.createdAt.toISOString() ?? '',
    state:
      !row || (typeof state === 'object' && state.valid)
        ? TerminatorValidity.VALID
        : isInvalid
          ? (validities[state.reason] ?? TerminatorValidity.UNKNOWN_TERMINATOR)
          : TerminatorValidity.UNKNOWN,
    fixed: isInvalid && fix,
    detail: typeof state === 'string' ? state : state ? showable(state.detail) : missing,
  }).finish()
}

async function rowsOf(db: Db, ids: readonly string[]): Promise<readonly Row[]> {
  const { rows } = await db.query<Row>(sql`
    select id, service_id as "serviceId", router_id as "routerId", binding, address, host_id as "hostId",
           coalesce((select name from known_service where known_service.id = service_id), '') as "serviceName",
           coalesce((select name from router where router.id = router_id), '') as "routerName",
           created_at as "createdAt", (extract(epoch from updated_at) * 1000)::bigint as marker
      from terminator where id = any(${ids})`)
  return rows
}
